-- One step through the children of an instance, newest first: the rows of a stretch that pass the filters, and where the stretch ends.
-- A parked instance counts as failed. The answer has a row without an instance when none passes, and no row when the stretch is empty.
-- Rows: at most $9 read, at most $8 given. Locks: none. Index: instance_parent_idx, backwards.
-- $1 statuses text[] (null: all)
-- $2 name text (null: all)
-- $3 version text (null: all)
-- $4 id prefix text (null: all)
-- $5 created after bigint (ms; null: from the first)
-- $6 before: created_at bigint (ms; null: from the newest)
-- $7 before: instance text (null: every one of that time is after)
-- $8 limit bigint
-- $9 stretch bigint
-- $10 parked boolean (null: all)
-- $11 error code text (null: all)
-- $12 tag text (null: all)
-- $13 parent text
with stretch as materialized (
  select i.instance,
         i.created_at,
         i.name,
         i.version,
         i.execution,
         case when i.parked_at is not null then 'Failed' else i.status end as status,
         i.error_code,
         i.parked_at,
         i.tag,
         i.updated_at,
         i.parent_instance
  from /*schema*/instance i
  where i.parent_instance = $13::text
    and (i.created_at, i.instance) < (
      coalesce(timestamptz 'epoch' + $6::bigint * interval '1 millisecond', 'infinity'),
      coalesce($7::text, '')
    )
    and i.created_at > coalesce(timestamptz 'epoch' + $5::bigint * interval '1 millisecond', '-infinity')
  order by i.created_at desc, i.instance desc
  limit $9::bigint
),
tail as (
  select round(extract(epoch from s.created_at) * 1000)::bigint as created_at_ms,
         s.instance,
         (select count(*) from stretch) as seen
  from stretch s
  order by s.created_at, s.instance
  limit 1
),
wanted as (
  select s.*
  from stretch s
  where ($1::text[] is null or s.status = any ($1::text[]))
    and ($2::text is null or s.name = $2::text)
    and ($3::text is null or s.version = $3::text)
    and ($4::text is null or starts_with(s.instance, $4::text))
    and ($10::boolean is null or (s.parked_at is not null) = $10::boolean)
    and ($11::text is null or s.error_code = $11::text)
    and ($12::text is null or s.tag = $12::text)
  order by s.created_at desc, s.instance desc
  limit $8::bigint
)
select w.instance,
       w.name,
       w.version,
       w.execution,
       w.status,
       w.error_code,
       floor(extract(epoch from w.parked_at) * 1000)::bigint as parked_at_ms,
       w.tag,
       round(extract(epoch from w.created_at) * 1000)::bigint as created_at_ms,
       floor(extract(epoch from w.updated_at) * 1000)::bigint as updated_at_ms,
       w.parent_instance,
       tail.created_at_ms as tail_ms,
       tail.instance as tail_instance,
       tail.seen
from tail
left join wanted w on true
order by w.created_at desc, w.instance desc
