-- Whether name and input of the clients' starts are those that the instances that exist (also those just made) were started
-- with: one that continued as new has the input of its start in its first execution. Once that is pruned the name decides.
-- Rows: the starts given. Locks: none. Index: instance_pkey, execution_pkey.
-- $1 instances text[]
-- $2 names text[]
-- $3 inputs text[]
select start.ix,
       i.name = start.name
         and case
               when i.execution = 1 then i.input = start.input
               else coalesce(
                 (
                   select e.input = start.input
                   from /*schema*/execution e
                   where e.instance = start.instance and e.execution = 1
                 ),
                 true
               )
             end as same
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as start (instance, name, input, ix)
join /*schema*/instance i on i.instance = start.instance
