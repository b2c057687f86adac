-- Takes a chore for a while, so that one node at a time does it: the time before which it concerns things, by the clock of
-- the database. No row when somebody else has it.
-- Rows: one. Locks: its row, skipping a locked one. Index: chore_pkey.
-- $1 name text
-- $2 for_ms bigint
-- $3 older_than_ms bigint
with due as materialized (
  select c.name
  from /*schema*/chore c
  where c.name = $1::text and c.due_at <= statement_timestamp()
  for update of c skip locked
)
update /*schema*/chore c
set due_at = clock_timestamp() + make_interval(secs => $2::bigint / 1000.0)
from due
where c.name = due.name
returning floor(extract(epoch from statement_timestamp()) * 1000)::bigint - $3::bigint as before_ms
