-- Deletes the timers that surviving turns no longer want.
-- Rows: the timers given. Locks: inbox rows under their turn row's lock. Index: inbox_source_key.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 executions bigint[]
-- $8 scheduling events int[]
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
delete from /*schema*/inbox m
using unnest($5::int[], $6::text[], $7::bigint[], $8::int[]) as cancelled (turn, instance, execution, source)
where (select ok from passed)[cancelled.turn]
  and m.instance = cancelled.instance
  and m.execution = cancelled.execution
  and m.source = cancelled.source
