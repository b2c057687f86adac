-- Queues the timers of surviving turns: messages due later.
-- Rows: the timers given. Locks: none. Index: turn_queue_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 executions bigint[]
-- $8 scheduling events int[]
-- $9 due times bigint[] (ms)
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
insert into /*schema*/inbox (instance, due_at, kind, execution, source)
select timer.instance, timestamptz 'epoch' + timer.fire_at_ms * interval '1 millisecond', 'TimerFired', timer.execution, timer.source
from unnest($5::int[], $6::text[], $7::bigint[], $8::int[], $9::bigint[])
  as timer (turn, instance, execution, source, fire_at_ms)
where (select ok from passed)[timer.turn]
