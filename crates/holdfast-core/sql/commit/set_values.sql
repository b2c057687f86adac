-- Keeps values of surviving turns. A key comes once for each instance.
-- Rows: the keys given. Locks: kv rows under their turn row's lock. Index: turn_queue_pkey, kv_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 keys text[]
-- $8 values text[]
-- $9 times bigint[] (ms)
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
insert into /*schema*/kv (instance, key, value, updated_at)
select kept.instance, kept.key, kept.value, timestamptz 'epoch' + kept.at_ms * interval '1 millisecond'
from unnest($5::int[], $6::text[], $7::text[], $8::text[], $9::bigint[]) as kept (turn, instance, key, value, at_ms)
where (select ok from passed)[kept.turn]
on conflict (instance, key) do update
set value = excluded.value,
    updated_at = excluded.updated_at
