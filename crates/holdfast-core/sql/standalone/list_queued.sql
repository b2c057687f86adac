-- One step through the standalone activities that have not ended, by id: those of a stretch of the queue that pass the
-- filters, and where the stretch ends. The answer has a row without an id when none passes, and none when the stretch is
-- empty. The standalone activity of an id comes before the tasks of an instance with the same id.
-- Rows: at most $6 read, at most $5 given. Locks: none. Index: activity_queue_pkey.
-- $1 after text (null: from the first)
-- $2 id prefix text (null: all)
-- $3 name text (null: all)
-- $4 tag text (null: all)
-- $5 limit bigint
-- $6 stretch bigint
-- $7 status text (null: all)
with stretch as materialized (
  select a.instance as id,
         a.name,
         case when a.owner is not null and a.due_at > statement_timestamp() then 'Running' else 'Pending' end as status,
         a.attempt,
         a.deliveries,
         a.tag,
         a.owner as node,
         a.heartbeat,
         floor(extract(epoch from a.heartbeat_at) * 1000)::bigint as heartbeat_at_ms,
         floor(extract(epoch from a.scheduled_at) * 1000)::bigint as scheduled_at_ms,
         floor(extract(epoch from a.due_at) * 1000)::bigint as due_at_ms,
         null::bigint as ended_at_ms,
         null::text as result,
         a.execution
  from /*schema*/activity_queue a
  where a.instance > coalesce($1::text, '')
    and a.instance >= coalesce($2::text, '')
  order by a.instance, a.execution, a.event
  limit $6::bigint
),
tail as (
  select max(s.id collate "C") as id, count(*) as seen from stretch s
),
wanted as (
  select s.*
  from stretch s
  where s.execution = 0
    and ($2::text is null or starts_with(s.id, $2::text))
    and ($3::text is null or s.name = $3::text)
    and ($4::text is null or s.tag = $4::text)
    and ($7::text is null or s.status = $7::text)
  order by s.id
  limit $5::bigint
)
select w.id,
       w.name,
       w.status,
       w.attempt,
       w.deliveries,
       w.tag,
       w.node,
       w.heartbeat,
       w.heartbeat_at_ms,
       w.scheduled_at_ms,
       w.due_at_ms,
       w.ended_at_ms,
       w.result,
       tail.id as tail_id,
       tail.seen
from tail
left join wanted w on true
order by w.id
