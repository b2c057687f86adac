-- Those of the given instances that have ended or are parked, as a client sees them: nothing goes on by itself. Each is looked
-- up by itself, so that a plan made while the table was empty does not read the whole of it later.
-- Rows: the ids given. Locks: none. Index: instance_pkey.
-- $1 ids text[]
select i.instance,
       i.name,
       i.version,
       i.execution,
       case when i.parked_at is not null then 'Failed' else i.status end as status,
       i.output,
       i.error,
       i.error_code,
       floor(extract(epoch from i.parked_at) * 1000)::bigint as parked_at_ms,
       i.tag,
       i.custom_status,
       i.custom_status_version,
       floor(extract(epoch from i.created_at) * 1000)::bigint as created_at_ms,
       floor(extract(epoch from i.updated_at) * 1000)::bigint as updated_at_ms,
       i.parent_instance
from unnest($1::text[]) as wanted (instance)
cross join lateral (select i.* from /*schema*/instance i where i.instance = wanted.instance limit 1) i
where i.finished_at is not null or i.parked_at is not null
