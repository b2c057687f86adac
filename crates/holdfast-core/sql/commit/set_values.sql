-- Keeps values of surviving turns. A key comes once for each instance.
-- Rows: the keys given. Locks: kv rows under their turn row's lock. Index: turn_queue_pkey, kv_pkey.
-- $1 instances text[]
-- $2 keys text[]
-- $3 values text[]
-- $4 times bigint[] (ms)
insert into /*schema*/kv (instance, key, value, updated_at)
select kept.instance, kept.key, kept.value, timestamptz 'epoch' + kept.at_ms * interval '1 millisecond'
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) as kept (instance, key, value, at_ms)
on conflict (instance, key) do update
set value = excluded.value,
    updated_at = excluded.updated_at
