-- An instance and all its descendants, in no order; no row when there is no such instance.
-- Rows: the tree. Locks: none. Index: instance_pkey, instance_parent_idx.
-- $1 root text
with recursive tree as (
  select i.instance, i.parent_instance, i.finished_at, i.created_at
  from /*schema*/instance i
  where i.instance = $1::text
  union all
  select i.instance, i.parent_instance, i.finished_at, i.created_at
  from tree
  join /*schema*/instance i on i.parent_instance = tree.instance
)
select tree.instance,
       tree.parent_instance,
       tree.finished_at is not null as ended,
       floor(extract(epoch from tree.created_at) * 1000000)::bigint as created_at_us
from tree
