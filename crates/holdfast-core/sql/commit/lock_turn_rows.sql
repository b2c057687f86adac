-- Locks every turn row that the commit settles or addresses; what passes the fence check afterwards stays so.
-- Rows: the instances given. Locks: turn rows, ascending. Index: turn_queue_pkey.
-- $1 instances text[]
with locked as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.instance = any ($1::text[])
  order by q.instance
  for no key update
)
select count(*) as locked from locked
