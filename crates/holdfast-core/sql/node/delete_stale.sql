-- Deletes silent nodes that are dead. Each is judged by its own times, whatever the caller's are: it is stale after its own
-- age, and only for a caller that itself was heard all that long. A caller without such a past cannot tell crashes from an
-- outage, so it leaves peers that fell silent together, and those that the server has not been up long enough for. An older
-- epoch of its own explicit id fences itself before it is silent, so it is nobody's outage.
-- Rows: the nodes given, few. Locks: node rows, skipping locked ones. Index: node_pkey, read whole.
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
         $3::boolean and n.id = $1::text and n.epoch < $2::bigint as predecessor
  from /*schema*/node n
  where n.heartbeat_at < statement_timestamp() -
      case
        when $3::boolean and n.id = $1::text and n.epoch < $2::bigint then least(n.stale_after, 3 * n.heartbeat_interval)
        else n.stale_after
      end
    and n.epoch <> $2::bigint
),
peers as materialized (
  select count(*) as nodes, max(silent.heartbeat_at) - min(silent.heartbeat_at) > max(silent.heartbeat_interval) as apart
  from silent
  where not silent.predecessor
),
stale as materialized (
  select n.id, n.epoch
  from silent
  cross join peers
  join /*schema*/node n on n.id = silent.id and n.epoch = silent.epoch
  where silent.epoch = any ($6::bigint[])
    and n.heartbeat_at = silent.heartbeat_at
    and (
      silent.predecessor
      or $5::bigint * interval '1 millisecond' >= silent.stale_after
      or (
        $4::boolean
        and (peers.nodes < 2 or peers.apart)
        and pg_postmaster_start_time() < statement_timestamp() - silent.stale_after
      )
    )
  order by n.id, n.epoch
  for update of n skip locked
)
delete from /*schema*/node n
using stale
where n.id = stale.id and n.epoch = stale.epoch
returning n.id
