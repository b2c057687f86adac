-- Deletes standalone activities that have ended and were kept long enough.
-- Rows: at most $1. Locks: their rows, skipping locked ones. Index: ended_activity_keep_until_idx, ended_activity_pkey.
-- $1 limit bigint
with over as materialized (
  select e.id
  from /*schema*/ended_activity e
  where e.keep_until <= statement_timestamp() and e.keep_until < 'infinity'
  limit $1::bigint
  for update skip locked
)
delete from /*schema*/ended_activity e using over where e.id = over.id
returning e.id
