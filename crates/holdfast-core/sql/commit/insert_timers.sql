-- Queues the timers of surviving turns: messages due later.
-- Rows: the timers given. Locks: none. Index: turn_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 due times bigint[] (ms)
insert into /*schema*/inbox (instance, due_at, kind, execution, source)
select timer.instance, timestamptz 'epoch' + timer.fire_at_ms * interval '1 millisecond', 'TimerFired', timer.execution, timer.source
from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[])
  as timer (instance, execution, source, fire_at_ms)
