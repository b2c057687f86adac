-- Goodbye: what the node still owns is free and due at once, its count unchanged. What ran under it without a row is
-- found out by whoever claims it.
-- Rows: at most $3. Locks: queue rows, skipping locked ones. Index: turn_queue_owner_idx.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 limit bigint
with candidate as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.owner = $1::text and q.owner_epoch = $2::bigint
  limit $3::bigint
  for update of q skip locked
)
update /*schema*/turn_queue q
set due_at = clock_timestamp(),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    cut_off = true
from candidate
where q.instance = candidate.instance
returning q.fence
