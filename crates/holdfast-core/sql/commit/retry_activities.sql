-- Puts activity tasks whose lease stands back for their next attempt; the fence ends, deliveries start anew.
-- Rows: the tasks given. Locks: activity rows in key order, after their turn rows. Index: activity_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[]
-- $5 owners text[]
-- $6 owner epochs bigint[]
-- $7 delays bigint[] (ms)
-- $8 next attempts int[]
-- $9 heartbeats text[] (null: what is stored)
with held as materialized (
  select a.instance, a.execution, a.event, task.delay_ms, task.attempt, task.heartbeat, task.ix
  from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::int[],
    $9::text[])
    with ordinality as task (instance, execution, event, fence, owner, owner_epoch, delay_ms, attempt, heartbeat, ix)
  join /*schema*/activity_queue a
    on a.instance = task.instance
    and a.execution = task.execution
    and a.event = task.event
    and a.fence = task.fence
    and (a.owner is null or (a.owner = task.owner and a.owner_epoch = task.owner_epoch))
  order by a.instance, a.execution, a.event
  for update of a
)
update /*schema*/activity_queue a
set due_at = clock_timestamp() + make_interval(secs => held.delay_ms / 1000.0),
    attempt = held.attempt,
    heartbeat = coalesce(held.heartbeat, a.heartbeat),
    deliveries = 0,
    isolated = false,
    last_fence = a.fence,
    fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null
from held
where a.instance = held.instance and a.execution = held.execution and a.event = held.event
returning held.ix
