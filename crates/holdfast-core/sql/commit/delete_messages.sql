-- Deletes the messages that surviving turns used up.
-- Rows: the messages given. Locks: inbox rows under their turn row's lock. Index: inbox_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 message ids bigint[]
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
using unnest($5::int[], $6::text[], $7::bigint[]) as consumed (turn, instance, id)
where (select ok from passed)[consumed.turn]
  and m.instance = consumed.instance
  and m.id = consumed.id
