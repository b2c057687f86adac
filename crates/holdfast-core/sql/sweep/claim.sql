-- Takes chores, each for a while, so that one node at a time does each: those that are due and nobody else is taking, and
-- the time by the clock of the database. It also says of which there may be something to do, as far as one look at the first
-- rows tells, so that a round of nodes at rest is this one statement.
-- Rows: those of the chores named, and one of each table asked. Locks: the chores' rows, skipping locked ones. Index: chore_pkey,
-- ended_activity_keep_until_idx, turn_queue_due_at_idx, activity_queue_due_at_idx, activity_queue_any_tag_idx,
-- activity_queue_session_idx.
-- $1 names text[]
-- $2 for_ms bigint[]
with due as materialized (
  select c.name
  from /*schema*/chore c
  where c.name = any ($1::text[]) and c.due_at <= statement_timestamp()
  for update of c skip locked
),
taken as (
  update /*schema*/chore c
  set due_at = clock_timestamp() + wanted.for_ms * interval '1 millisecond'
  from due
  join unnest($1::text[], $2::bigint[]) as wanted (name, for_ms) on wanted.name = due.name
  where c.name = due.name
  returning c.name
)
select taken.name,
       floor(extract(epoch from statement_timestamp()) * 1000)::bigint as now_ms,
       case taken.name
         when 'jobs' then (
           select true
           from /*schema*/ended_activity e
           where e.keep_until <= statement_timestamp() and e.keep_until < 'infinity'
           order by e.keep_until
           limit 1
         ) is true
         -- What is due for ten seconds: find_unserved says whose it is.
         when 'unserved' then (
           select true
           from /*schema*/turn_queue q
           where q.due_at <= statement_timestamp() - interval '10 seconds'
           order by q.due_at
           limit 1
         ) is true or (
           select true
           from /*schema*/activity_queue a
           where a.tag is null and a.session is null and a.due_at <= statement_timestamp() - interval '10 seconds'
           order by a.due_at
           limit 1
         ) is true or (
           select true
           from /*schema*/activity_queue a
           where (a.tag is not null) is true and a.session is null
             and a.due_at <= statement_timestamp() - interval '10 seconds'
           order by a.due_at
           limit 1
         ) is true or (
           select true
           from /*schema*/activity_queue a
           where a.session is not null and a.due_at <= statement_timestamp() - interval '10 seconds'
           order by a.due_at
           limit 1
         ) is true
         else true
       end as has_work
from taken
