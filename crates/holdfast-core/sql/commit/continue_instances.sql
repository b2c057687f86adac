-- Continue-as-new of surviving turns: the execution that closed is archived, its instance holds the next one.
-- Rows: the turns given. Locks: instance rows under their turn rows' locks. Index: turn_queue_pkey, instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 closed executions bigint[]
-- $8 next inputs text[]
-- $9 next versions text[]
-- $10 carried messages text[]
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
),
archived as (
  insert into /*schema*/execution (instance, execution, status, version, input, output, started_at, finished_at)
  select i.instance, i.execution, 'ContinuedAsNew', i.version, i.input, next.input, i.started_at, clock_timestamp()
  from unnest($5::int[], $6::text[], $7::bigint[], $8::text[]) as next (turn, instance, execution, input)
  join /*schema*/instance i on i.instance = next.instance and i.execution = next.execution
  where (select ok from passed)[next.turn]
)
update /*schema*/instance i
set execution = next.execution + 1,
    input = next.input,
    version = next.version,
    carried = next.carried,
    started_at = null,
    updated_at = clock_timestamp()
from unnest($5::int[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::text[])
  as next (turn, instance, execution, input, version, carried)
where (select ok from passed)[next.turn]
  and i.instance = next.instance
  and i.execution = next.execution
