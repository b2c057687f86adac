-- Renews held leases: the greater of the old due time and now + timeout + backoff(deliveries). Never shortens.
-- Rows: the fences given. Locks: queue rows, skipping locked ones (the caller tries those again).
-- Index: activity_queue_owner_idx, node_pkey.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 fences bigint[]
-- $4 lock_timeout_ms bigint
-- $5 backoff_base_ms bigint
-- $6 backoff_max_ms bigint
with candidate as materialized (
  select q.instance, q.execution, q.event
  from /*schema*/activity_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
    and (q.fence in (select held.fence from unnest($3::bigint[]) as held (fence))) is true
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  for update of q skip locked
)
update /*schema*/activity_queue q
set due_at = greatest(q.due_at, clock_timestamp() + make_interval(secs => ($4::bigint
  + case
      when q.deliveries < 2 then 0
      else least($6::bigint, $5::bigint * power(2, least(q.deliveries - 2, 40)))
    end) / 1000.0))
from candidate
where q.instance = candidate.instance and q.execution = candidate.execution and q.event = candidate.event
returning q.fence
