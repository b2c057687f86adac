-- Appends the events of surviving turns.
-- Rows: the events given. Locks: none. Index: turn_queue_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 executions bigint[]
-- $8 event ids int[]
-- $9 kinds text[]
-- $10 sources int[]
-- $11 times bigint[] (ms)
-- $12 data text[]
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
insert into /*schema*/history (instance, execution, event_id, kind, source, at_ms, data)
select event.instance, event.execution, event.event_id, event.kind, event.source, event.at_ms, event.data
from unnest($5::int[], $6::text[], $7::bigint[], $8::int[], $9::text[], $10::int[], $11::bigint[], $12::text[])
  as event (turn, instance, execution, event_id, kind, source, at_ms, data)
where (select ok from passed)[event.turn]
