-- Gives up leases under which activities ran without a row: due at once, and whoever claims them next finds out which these
-- were. Their delivery counts. Ends their fences.
-- Rows: the fences given. Locks: queue rows in key order, waiting shortly. Index: turn_queue_owner_idx.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 fences bigint[]
with candidate as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
    and (q.fence in (select held.fence from unnest($3::bigint[]) as held (fence))) is true
  order by q.instance
  for update of q
)
update /*schema*/turn_queue q
set due_at = clock_timestamp(),
    fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    cut_off = true
from candidate
where q.instance = candidate.instance
returning q.fence
