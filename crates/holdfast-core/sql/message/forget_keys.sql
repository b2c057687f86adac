-- Forgets old keys of clients' messages.
-- Rows: at most $2. Locks: key rows, skipping locked ones. Index: message_key_sent_at_idx, message_key_pkey.
-- $1 older_than_ms bigint
-- $2 limit bigint
with old as materialized (
  select k.instance, k.dedup_key
  from /*schema*/message_key k
  where k.sent_at < statement_timestamp() - make_interval(secs => $1::bigint / 1000.0)
  order by k.sent_at
  limit $2::bigint
  for update of k skip locked
)
delete from /*schema*/message_key k
using old
where k.instance = old.instance and k.dedup_key = old.dedup_key
returning k.sent_at
