-- Instances, newest first, after a key.
-- Rows: at most $4; with a status given, rows of other statuses are passed over. Locks: none. Index: instance_created_at_idx.
-- $1 status text (null: all)
-- $2 after: created_at in ms bigint (null: from the newest)
-- $3 after: instance text
-- $4 limit bigint
select i.instance,
       i.name,
       i.version,
       i.execution,
       i.status,
       i.output,
       i.error,
       i.custom_status,
       i.custom_status_version,
       floor(extract(epoch from i.created_at) * 1000)::bigint as created_at_ms,
       floor(extract(epoch from i.updated_at) * 1000)::bigint as updated_at_ms,
       i.parent_instance
from /*schema*/instance i
where (i.created_at, i.instance) < (
    coalesce(timestamptz 'epoch' + $2::bigint * interval '1 millisecond', 'infinity'),
    coalesce($3::text, '')
  )
  and ($1::text is null or i.status = $1::text)
order by i.created_at desc, i.instance desc
limit $4::bigint
