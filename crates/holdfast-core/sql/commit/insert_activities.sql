-- Queues the activity tasks of surviving turns; those that a node takes at once are leased to it, as a claim would, when its
-- row is there: the delivery counts, and due is now + timeout.
-- Rows: the tasks given. Locks: none. Index: node_pkey.
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
-- $12 owners text[] (null: nobody)
-- $13 owner epochs bigint[]
-- $14 leases bigint[] (ms)
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, tag, session,
  orchestration_name, orchestration_version, due_at, scheduled_at, fence, owner, owner_epoch, leased_at, deliveries
)
select task.instance, task.execution, task.event, task.name, task.input, task.retry, task.timeout_ms, task.tag, task.session,
       task.orchestration_name, task.orchestration_version,
       case when node.id is null then now.stamp else now.stamp + make_interval(secs => task.lease_ms / 1000.0) end,
       now.stamp,
       case when node.id is null then 0 else nextval('/*schema*/fence_seq') end,
       node.id,
       node.epoch,
       case when node.id is not null then now.stamp end,
       (node.id is not null)::int
from unnest(
    $1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[])
  as task (instance, execution, event, name, input, retry, timeout_ms, tag, session,
           orchestration_name, orchestration_version, owner, owner_epoch, lease_ms)
cross join lateral (select clock_timestamp() as stamp) now
left join /*schema*/node node on node.id = task.owner and node.epoch = task.owner_epoch
returning instance, event, fence, owner is not null as handed, floor(extract(epoch from scheduled_at) * 1000)::bigint as scheduled_at_ms
