-- Gives back the activity tasks that an earlier run of a turn leased to its own node: the reply was lost, so nobody was told of
-- these leases. They are unstarted, except those whose body ran before they had a row: that delivery counts. Tasks of a turn
-- that still holds its fence do not exist yet.
-- Rows: the tasks given. Locks: activity rows in the order given, after their turn rows. Index: activity_queue_pkey,
-- turn_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 owners text[]
-- $5 owner epochs bigint[]
-- $6 turn fences bigint[]
-- $7 deliveries that count int[] (0: unstarted)
update /*schema*/activity_queue a
set owner = null,
    owner_epoch = null,
    leased_at = null,
    due_at = clock_timestamp(),
    deliveries = task.deliveries,
    fence = nextval('/*schema*/fence_seq')
from unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::bigint[], $6::bigint[], $7::int[])
  as task (instance, execution, event, owner, owner_epoch, turn_fence, deliveries)
where a.instance = task.instance
  and a.execution = task.execution
  and a.event = task.event
  and (a.owner = task.owner and a.owner_epoch = task.owner_epoch) is true
  and a.deliveries = greatest(task.deliveries, 1)
  and (select q.fence <> task.turn_fence from /*schema*/turn_queue q where q.instance = task.instance)
