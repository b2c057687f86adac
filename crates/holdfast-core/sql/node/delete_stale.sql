-- Deletes stale nodes, if the caller's own last heartbeat is not late itself (it runs before the caller's beat).
-- Rows: nodes, few. Locks: node rows, skipping locked ones. Index: node_pkey, read whole.
-- $1 id text
-- $2 epoch bigint
-- $3 stale_after_ms bigint
-- $4 predecessor_stale_ms bigint (null when the id is not an explicit one)
with stale as materialized (
  select n.id, n.epoch
  from /*schema*/node n
  where (n.id <> $1::text or n.epoch <> $2::bigint)
    and n.heartbeat_at < statement_timestamp() - make_interval(secs =>
      case
        when n.id = $1::text and n.epoch < $2::bigint then least($3::bigint, coalesce($4::bigint, $3::bigint))
        else $3::bigint
      end / 1000.0)
    and exists (
      select
      from /*schema*/node own
      where own.id = $1::text and own.epoch = $2::bigint
        and own.heartbeat_at > statement_timestamp() - make_interval(secs => $3::bigint / 2000.0)
    )
  order by n.id, n.epoch
  for update of n skip locked
)
delete from /*schema*/node n
using stale
where n.id = stale.id and n.epoch = stale.epoch
returning n.id
