-- Locks the turn rows of a tree that is to be deleted: nothing can commit for it any more until the end.
-- Rows: the instances given. Locks: turn rows, ascending. Index: turn_queue_pkey.
-- $1 instances text[]
with locked as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.instance = any ($1::text[])
  order by q.instance
  for update
)
select count(*) as locked from locked
