-- Which of the given turn rows somebody else has locked at this moment; asked after a commit waited for one in vain.
-- Rows: the instances given. Locks: the free ones, ascending, for the time of the statement. Index: turn_queue_pkey.
-- $1 instances text[]
with free as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.instance = any ($1::text[])
  order by q.instance
  for no key update skip locked
)
select q.instance
from /*schema*/turn_queue q
where q.instance = any ($1::text[])
  and q.instance <> all (array(select free.instance from free))
