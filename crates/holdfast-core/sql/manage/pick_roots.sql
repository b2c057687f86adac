-- Those of the given instances that have no parent and pass, in the order given.
-- Rows: the ids given. Locks: none. Index: instance_pkey.
-- $1 ids text[]
-- $2 ended only boolean
-- $3 finished before bigint (ms; null: any)
select i.instance
from unnest($1::text[]) with ordinality as wanted (instance, ix)
join /*schema*/instance i on i.instance = wanted.instance
where i.parent_instance is null
  and (not $2::boolean or i.finished_at is not null)
  and ($3::bigint is null or i.finished_at < timestamptz 'epoch' + $3::bigint * interval '1 millisecond')
order by wanted.ix
