-- Whether name and input of the clients' starts are those of the instances that exist (also when just made).
-- Rows: the starts given. Locks: none. Index: instance_pkey.
-- $1 instances text[]
-- $2 names text[]
-- $3 inputs text[]
select start.ix, i.name = start.name and i.input = start.input as same
from unnest($1::text[], $2::text[], $3::text[]) with ordinality as start (instance, name, input, ix)
join /*schema*/instance i on i.instance = start.instance
