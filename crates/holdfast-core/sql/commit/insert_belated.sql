-- Queues activity tasks that were scheduled without a row, by turns that kept their lease; not those that have a row, or a
-- result that their instance was told. Those whose body runs already are leased to the node that runs them when its row is
-- there: due is now + timeout. That delivery counts either way.
-- Rows: the tasks given. Locks: none but the turn rows already locked. Index: activity_queue_pkey, inbox_source_key, node_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 names text[]
-- $5 inputs text[]
-- $6 retry policies text[]
-- $7 time limits bigint[] (ms)
-- $8 tags text[]
-- $9 sessions text[]
-- $10 orchestration names text[]
-- $11 orchestration versions text[]
-- $12 owners text[] (null: its body does not run)
-- $13 owner epochs bigint[]
-- $14 leases bigint[] (ms)
-- $15 attempts int[]
-- $16 deliveries int[] (beside the one that runs)
-- $17 delays bigint[] (ms)
-- $18 heartbeats text[] (null: none)
-- $19 isolated boolean[] (to be claimed alone)
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, tag, session,
  orchestration_name, orchestration_version, due_at, scheduled_at, fence, owner, owner_epoch, leased_at, deliveries,
  attempt, heartbeat, heartbeat_at, isolated
)
select task.instance, task.execution, task.event, task.name, task.input, task.retry, task.timeout_ms, task.tag, task.session,
       task.orchestration_name, task.orchestration_version,
       now.stamp + make_interval(secs => case when node.id is null then task.delay_ms else task.lease_ms end / 1000.0),
       now.stamp,
       case when node.id is null then 0 else nextval('/*schema*/fence_seq') end,
       node.id,
       node.epoch,
       case when node.id is not null then now.stamp end,
       task.deliveries + (task.owner is not null)::int,
       task.attempt,
       task.heartbeat,
       case when task.heartbeat is not null then now.stamp end,
       task.isolated
from unnest(
    $1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[],
    $15::int[], $16::int[], $17::bigint[], $18::text[], $19::boolean[])
  as task (instance, execution, event, name, input, retry, timeout_ms, tag, session,
           orchestration_name, orchestration_version, owner, owner_epoch, lease_ms,
           attempt, deliveries, delay_ms, heartbeat, isolated)
cross join lateral (select clock_timestamp() as stamp) now
left join /*schema*/node node on node.id = task.owner and node.epoch = task.owner_epoch
where (
    select true
    from /*schema*/activity_queue a
    where a.instance = task.instance and a.execution = task.execution and a.event = task.event
  ) is null
  and (
    select true
    from /*schema*/inbox m
    where m.instance = task.instance and m.execution = task.execution and m.source = task.event
  ) is null
returning instance, event, fence, owner is not null as handed, floor(extract(epoch from scheduled_at) * 1000)::bigint as scheduled_at_ms
