-- Deletes stale nodes, if the caller's own heartbeats have no gap (it runs before the caller's beat).
-- A caller without a past cannot tell crashes from an outage, so it leaves peers that fell silent together, and everybody
-- while the server itself has not been up for a stale age. An older epoch of its own explicit id fences itself before it is
-- stale here, so it is nobody's outage.
-- Rows: nodes, few. Locks: node rows, skipping locked ones. Index: node_pkey, read whole.
-- $1 id text
-- $2 epoch bigint
-- $3 stale_after_ms bigint
-- $4 predecessor_stale_ms bigint (null when the id is not an explicit one)
-- $5 interval_ms bigint (own heartbeats and silent peers)
-- $6 fresh boolean (the caller has no past)
with silent as materialized (
  select count(*) as nodes,
         max(n.heartbeat_at) - min(n.heartbeat_at) > make_interval(secs => $5::bigint / 1000.0) as apart
  from /*schema*/node n
  where n.heartbeat_at < statement_timestamp() - make_interval(secs => $3::bigint / 1000.0)
    and (n.id <> $1::text or ($4::bigint is null and n.epoch <> $2::bigint))
),
stale as materialized (
  select n.id, n.epoch
  from /*schema*/node n
  cross join silent
  where (n.id <> $1::text or n.epoch <> $2::bigint)
    and n.heartbeat_at < statement_timestamp() - make_interval(secs =>
      case
        when n.id = $1::text and n.epoch < $2::bigint then least($3::bigint, coalesce($4::bigint, $3::bigint))
        else $3::bigint
      end / 1000.0)
    and (
      not $6::boolean
      or (n.id = $1::text and n.epoch < $2::bigint and $4::bigint is not null)
      or (
        (silent.nodes < 2 or silent.apart)
        and pg_postmaster_start_time() < statement_timestamp() - make_interval(secs => $3::bigint / 1000.0)
      )
    )
    and exists (
      select
      from /*schema*/node own
      where own.id = $1::text and own.epoch = $2::bigint
        and own.heartbeat_at > statement_timestamp() - make_interval(secs => 2 * $5::bigint / 1000.0)
    )
  order by n.id, n.epoch
  for update of n skip locked
)
delete from /*schema*/node n
using stale
where n.id = stale.id and n.epoch = stale.epoch
returning n.id
