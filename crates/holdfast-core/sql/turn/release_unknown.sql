-- Releases leases of this node whose claim's reply never arrived: owned, older than the claim's time limit, and not
-- among the held ones. They were not started, so their delivery is given back. One that became known meanwhile may have been, and
-- activities may run under it without a row: whoever claims it finds out.
-- Rows: at most 1000. Locks: queue rows, skipping locked ones. Index: turn_queue_owner_idx.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 held fences bigint[]
-- $4 claim_limit_ms bigint
with candidate as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
    and q.leased_at < statement_timestamp() - make_interval(secs => $4::bigint / 1000.0)
    and q.fence not in (select held.fence from unnest($3::bigint[]) as held (fence))
  limit 1000
  for update of q skip locked
)
update /*schema*/turn_queue q
set due_at = clock_timestamp(),
    fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    cut_off = true,
    deliveries = greatest(q.deliveries - 1, 0)
from candidate
where q.instance = candidate.instance
returning q.fence
