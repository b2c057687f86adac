-- Held fences that are no longer this node's: taken over, cancelled, deleted or recovered.
-- Rows: the fences given. Locks: none. Index: activity_queue_owner_idx.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 fences bigint[]
select held.fence
from unnest($3::bigint[]) as held (fence)
where held.fence not in (
  select q.fence
  from /*schema*/activity_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
)
