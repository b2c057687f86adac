-- Locks the rows of a tree that is to be deleted, so that nobody runs one of them again meanwhile: an ended instance has no turn
-- row to lock. A statement of its own: what the deletion reads is as it was left by whoever held them.
-- Rows: the instances given. Locks: instance rows, ascending, under the turn rows already locked. Index: instance_pkey.
-- $1 instances text[]
with locked as materialized (
  select i.instance
  from /*schema*/instance i
  where i.instance = any ($1::text[])
  order by i.instance
  for update
)
select count(*) as locked from locked
