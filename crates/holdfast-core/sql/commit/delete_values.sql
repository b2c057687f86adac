-- Drops values that surviving turns keep no longer: of one key, or (key null) of all.
-- Rows: the keys given, or all of an instance. Locks: kv rows under their turn row's lock. Index: turn_queue_pkey, kv_pkey.
-- $1 instances text[]
-- $2 keys text[] (null: all)
delete from /*schema*/kv v
using unnest($1::text[], $2::text[]) as dropped (instance, key)
where v.instance = dropped.instance
  and (dropped.key is null or v.key = dropped.key)
