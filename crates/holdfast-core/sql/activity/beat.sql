-- Stores what running bodies told last, for the delivery after this one and for lists.
-- Rows: the tasks given whose lease stands. Locks: activity rows in key order, skipping locked ones (the caller tries those
-- again). Index: activity_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[]
-- $5 details text[]
with candidate as materialized (
  select q.instance, q.execution, q.event, beat.details
  from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::text[]) as beat (instance, execution, event, fence, details)
  join /*schema*/activity_queue q
    on q.instance = beat.instance and q.execution = beat.execution and q.event = beat.event and q.fence = beat.fence
  order by q.instance, q.execution, q.event
  for update of q skip locked
)
update /*schema*/activity_queue q
set heartbeat = candidate.details,
    heartbeat_at = clock_timestamp()
from candidate
where q.instance = candidate.instance and q.execution = candidate.execution and q.event = candidate.event
returning q.fence
