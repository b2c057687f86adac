-- Tells surviving parents that the id of a child was taken by an instance that is not this child. The parent is settled
-- by the same commit, which derives its due time from the inbox.
-- Rows: the children given. Locks: none. Index: turn_queue_pkey, instance_pkey.
-- $1 child instances text[]
-- $2 parent instances text[]
-- $3 parent executions bigint[]
-- $4 parent events int[]
-- $5 errors text[]
insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
select child.parent_instance, clock_timestamp(), 'ChildFailed', child.parent_execution, child.parent_event, child.error
from unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[])
  as child (instance, parent_instance, parent_execution, parent_event, error)
where not exists (
    select
    from /*schema*/instance i
    where i.instance = child.instance
      and i.parent_instance = child.parent_instance
      and i.parent_execution = child.parent_execution
      and i.parent_event = child.parent_event
  )
on conflict (instance, execution, source) where source is not null do nothing
