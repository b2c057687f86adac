-- Deletes the activity tasks that surviving turns no longer want, leased or not; a running body learns it with its
-- node's next heartbeat.
-- Rows: the tasks given. Locks: activity rows, after their turn rows. Index: activity_queue_pkey.
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
delete from /*schema*/activity_queue a
using unnest($5::int[], $6::text[], $7::bigint[], $8::int[]) as cancelled (turn, instance, execution, event)
where (select ok from passed)[cancelled.turn]
  and a.instance = cancelled.instance
  and a.execution = cancelled.execution
  and a.event = cancelled.event
