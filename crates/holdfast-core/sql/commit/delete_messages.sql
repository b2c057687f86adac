-- Deletes the messages that surviving turns used up.
-- Rows: the messages given. Locks: inbox rows under their turn row's lock. Index: inbox_pkey.
-- $1 instances text[]
-- $2 message ids bigint[]
delete from /*schema*/inbox m
using unnest($1::text[], $2::bigint[]) as consumed (instance, id)
where m.instance = consumed.instance
  and m.id = consumed.id
