-- Frees leases whose owner has no node row: due at once, to be claimed alone. The fence stays: a late write of the
-- former owner succeeds while nobody has taken the row. What ran under one without a row is found out by whoever claims it.
-- Rows: at most $1, found among the owned rows. Locks: queue rows, skipping locked ones. Index: turn_queue_owner_idx.
-- $1 limit bigint
with candidate as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.owner is not null
    and not exists (select from /*schema*/node n where n.id = q.owner and n.epoch = q.owner_epoch)
  limit $1::bigint
  for update of q skip locked
)
update /*schema*/turn_queue q
set due_at = clock_timestamp(),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    isolated = true,
    cut_off = true
from candidate
where q.instance = candidate.instance
returning q.fence
