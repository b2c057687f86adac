-- Takes chores, each for a while, so that one node at a time does each: those that are due and nobody else is taking, and
-- the time by the clock of the database.
-- Rows: those of the chores named. Locks: their rows, skipping locked ones. Index: chore_pkey.
-- $1 names text[]
-- $2 for_ms bigint[]
with due as materialized (
  select c.name
  from /*schema*/chore c
  where c.name = any ($1::text[]) and c.due_at <= statement_timestamp()
  for update of c skip locked
)
update /*schema*/chore c
set due_at = clock_timestamp() + wanted.for_ms * interval '1 millisecond'
from due
join unnest($1::text[], $2::bigint[]) as wanted (name, for_ms) on wanted.name = due.name
where c.name = due.name
returning c.name, floor(extract(epoch from statement_timestamp()) * 1000)::bigint as now_ms
