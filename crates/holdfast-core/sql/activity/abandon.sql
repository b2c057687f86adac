-- Gives up leases whose body has started: the delivery counts. Work that was stopped is due at once; work whose result
-- cannot be stored keeps the due time that the claim or the last renewal set, back-off included. Ends their fences.
-- Rows: the fences given. Locks: queue rows in key order, waiting shortly. Index: activity_queue_owner_idx.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 fences bigint[]
-- $4 at_once boolean
with candidate as materialized (
  select q.instance, q.execution, q.event
  from /*schema*/activity_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
    and (q.fence in (select held.fence from unnest($3::bigint[]) as held (fence))) is true
  order by q.instance, q.execution, q.event
  for update of q
)
update /*schema*/activity_queue q
set due_at = case when $4::boolean then clock_timestamp() else q.due_at end,
    fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null
from candidate
where q.instance = candidate.instance and q.execution = candidate.execution and q.event = candidate.event
returning q.fence
