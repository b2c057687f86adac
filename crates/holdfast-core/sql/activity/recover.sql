-- Frees leases whose owner has no node row: due at once, to be claimed alone. The fence stays: a late write of the
-- former owner succeeds while nobody has taken the row.
-- Rows: at most $1, found among the owned rows. Locks: queue rows, skipping locked ones. Index: activity_queue_owner_idx.
-- $1 limit bigint
with candidate as materialized (
  select q.instance, q.execution, q.event
  from /*schema*/activity_queue q
  where q.owner is not null
    and not exists (select from /*schema*/node n where n.id = q.owner and n.epoch = q.owner_epoch)
  limit $1::bigint
  for update of q skip locked
)
update /*schema*/activity_queue q
set due_at = clock_timestamp(),
    lost_by = q.owner,
    owner = null,
    owner_epoch = null,
    leased_at = null,
    isolated = true
from candidate
where q.instance = candidate.instance and q.execution = candidate.execution and q.event = candidate.event
returning q.fence
