-- Those of the given standalone activities that exist with the same name and input, waiting, running or ended.
-- Rows: the tasks given. Locks: none. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 ids text[]
-- $2 names text[]
-- $3 inputs text[]
select task.ix,
       coalesce(
         (select a.name = task.name and a.input = task.input
          from /*schema*/activity_queue a
          where a.instance = task.id and a.execution = 0 and a.event = 0),
         (select e.name = task.name and e.input = task.input from /*schema*/ended_activity e where e.id = task.id)
       ) as same
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as task (id, name, input, ix)
