-- Tells surviving parents that the id of a child was taken by an instance that is not this child. The parent is settled
-- by the same commit, which derives its due time from the inbox.
-- Rows: the children given. Locks: none. Index: turn_queue_pkey, instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 child instances text[]
-- $7 parent instances text[]
-- $8 parent executions bigint[]
-- $9 parent events int[]
-- $10 errors text[]
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
insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
select child.parent_instance, clock_timestamp(), 'ChildFailed', child.parent_execution, child.parent_event, child.error
from unnest($5::int[], $6::text[], $7::text[], $8::bigint[], $9::int[], $10::text[])
  as child (turn, instance, parent_instance, parent_execution, parent_event, error)
where (select ok from passed)[child.turn]
  and not exists (
    select
    from /*schema*/instance i
    where i.instance = child.instance
      and i.parent_instance = child.parent_instance
      and i.parent_execution = child.parent_execution
      and i.parent_event = child.parent_event
  )
on conflict (instance, execution, source) where source is not null do nothing
