-- Drops values that surviving turns keep no longer: of one key, or (key null) of all.
-- Rows: the keys given, or all of an instance. Locks: kv rows under their turn row's lock. Index: turn_queue_pkey, kv_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 keys text[] (null: all)
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
delete from /*schema*/kv v
using unnest($5::int[], $6::text[], $7::text[]) as dropped (turn, instance, key)
where (select ok from passed)[dropped.turn]
  and v.instance = dropped.instance
  and (dropped.key is null or v.key = dropped.key)
