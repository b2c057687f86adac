-- One step through the standalone activities that have ended, by id: those of a stretch that pass the filters, and where
-- the stretch ends. The answer has a row without an id when none passes. Only errors are given, no results.
-- Rows: at most $6 read, at most $5 given. Locks: none. Index: ended_activity_pkey.
-- $1 after text (null: from the first)
-- $2 id prefix text (null: all)
-- $3 name text (null: all)
-- $4 tag text (null: all)
-- $5 limit bigint
-- $6 stretch bigint
-- $7 status text (null: all)
with stretch as materialized (
  select e.id,
         e.name,
         e.status,
         e.attempt,
         e.deliveries,
         e.tag,
         null::text as node,
         e.heartbeat,
         null::bigint as heartbeat_at_ms,
         floor(extract(epoch from e.scheduled_at) * 1000)::bigint as scheduled_at_ms,
         null::bigint as due_at_ms,
         floor(extract(epoch from e.ended_at) * 1000)::bigint as ended_at_ms,
         e.result
  from /*schema*/ended_activity e
  where e.id > coalesce($1::text, '')
    and e.id >= coalesce($2::text, '')
  order by e.id
  limit $6::bigint
),
tail as (
  select max(s.id collate "C") as id, count(*) as seen from stretch s
),
wanted as (
  select s.*
  from stretch s
  where ($2::text is null or starts_with(s.id, $2::text))
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
       case when w.status <> 'Completed' then w.result end as result,
       tail.id as tail_id,
       tail.seen
from tail
left join wanted w on true
order by w.id
