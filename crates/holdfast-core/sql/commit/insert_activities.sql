-- Queues the activity tasks of surviving turns.
-- Rows: the tasks given. Locks: none. Index: turn_queue_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 executions bigint[]
-- $8 scheduling events int[]
-- $9 names text[]
-- $10 inputs text[]
-- $11 retry policies text[]
-- $12 time limits bigint[] (ms)
-- $13 tags text[]
-- $14 sessions text[]
-- $15 orchestration names text[]
-- $16 orchestration versions text[]
with passed as materialized (
  select array_agg((
    select true
    from /*schema*/turn_queue q
    where q.instance = turn.instance
      and q.fence = turn.fence
      and (q.owner is null or (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch))
  ) order by turn.ix) as ok
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) with ordinality
    as turn (instance, fence, owner, owner_epoch, ix)
)
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, tag, session,
  orchestration_name, orchestration_version, due_at, scheduled_at
)
select task.instance, task.execution, task.event, task.name, task.input, task.retry, task.timeout_ms, task.tag, task.session,
       task.orchestration_name, task.orchestration_version, clock_timestamp(), clock_timestamp()
from unnest(
    $5::int[], $6::text[], $7::bigint[], $8::int[], $9::text[], $10::text[], $11::text[], $12::bigint[],
    $13::text[], $14::text[], $15::text[], $16::text[])
  as task (turn, instance, execution, event, name, input, retry, timeout_ms, tag, session,
           orchestration_name, orchestration_version)
where (select ok from passed)[task.turn]
