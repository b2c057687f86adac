-- One step through the turn rows: those that messages made before a time for instances that were never started, and where
-- the step ends. The answer has a row without an instance when there is none.
-- Rows: at most $3 read. Locks: none. Index: turn_queue_pkey.
-- $1 after: instance text (null: from the first)
-- $2 before_ms bigint
-- $3 stretch bigint
with stretch as materialized (
  select q.instance, q.name, q.created_at
  from /*schema*/turn_queue q
  where q.instance > coalesce($1::text, '')
  order by q.instance
  limit $3::bigint
),
tail as (
  select max(s.instance) as tail_instance, count(*) as seen from stretch s
)
select s.instance, tail.tail_instance, tail.seen
from tail
left join stretch s on s.name is null and s.created_at < timestamptz 'epoch' + $2::bigint * interval '1 millisecond'
order by s.instance
