-- Deletes silent nodes that are dead. Each is judged by its own times, whatever the caller's are: it is stale after its own
-- age, and only for a caller that itself was heard all that long. A caller without such a past cannot tell crashes from an
-- outage, so it leaves peers that fell silent together (within one interval), also when the other is not stale yet, and those
-- that the server has not been up long enough for. It is told of such an outage (a row without an id): most of them come
-- back, and the last one is not a single crash. An older epoch of its own explicit id fences itself before it is silent, so
-- it is nobody's outage.
-- Rows: nodes, few, read once. Locks: node rows, skipping locked ones. Index: node_pkey, read whole.
-- $1 id text
-- $2 epoch bigint
-- $3 explicit boolean (the id is an explicit one)
-- $4 fresh boolean (the caller has had no failure since it was started)
-- $5 clean_ms bigint (for how long the caller's heartbeats have had no failure)
-- $6 epochs bigint[] (of the nodes found silent; no two nodes have the same)
with silent as materialized (
  select n.id,
         n.epoch,
         n.heartbeat_at,
         n.heartbeat_interval,
         n.stale_after,
         $3::boolean and n.id = $1::text and n.epoch < $2::bigint as predecessor,
         n.heartbeat_at < statement_timestamp() -
           case
             when $3::boolean and n.id = $1::text and n.epoch < $2::bigint then least(n.stale_after, 3 * n.heartbeat_interval)
             else n.stale_after
           end as stale
  from /*schema*/node n
  where n.heartbeat_at < statement_timestamp() - 2 * n.heartbeat_interval
    and n.epoch <> $2::bigint
),
outage as materialized (
  select silent.epoch
  from silent
  where not silent.predecessor
    and exists (
      select
      from silent other
      where not other.predecessor
        and other.epoch <> silent.epoch
        and other.heartbeat_at >= silent.heartbeat_at - greatest(other.heartbeat_interval, silent.heartbeat_interval)
        and other.heartbeat_at <= silent.heartbeat_at + greatest(other.heartbeat_interval, silent.heartbeat_interval)
    )
),
stale as materialized (
  select n.id, n.epoch
  from silent
  join /*schema*/node n on n.id = silent.id and n.epoch = silent.epoch
  where silent.stale
    and silent.epoch = any ($6::bigint[])
    and n.heartbeat_at = silent.heartbeat_at
    and (
      silent.predecessor
      or $5::bigint * interval '1 millisecond' >= silent.stale_after
      or (
        $4::boolean
        and silent.epoch not in (select outage.epoch from outage)
        and pg_postmaster_start_time() < statement_timestamp() - silent.stale_after
      )
    )
  order by n.id, n.epoch
  for update of n skip locked
),
deleted as (
  delete from /*schema*/node n
  using stale
  where n.id = stale.id and n.epoch = stale.epoch
  returning n.id
)
select deleted.id
from deleted
union all
select null
where $4::boolean and exists (select from outage)
