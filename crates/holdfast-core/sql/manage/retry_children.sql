-- Tells a poisoned instance that is retried of the children that ended while it had ended itself; a child that is gone
-- failed. One that still runs tells it itself.
-- Rows: the children given. Locks: none but the turn row just made. Index: turn_queue_pkey, instance_pkey.
-- $1 instance text
-- $2 execution bigint
-- $3 scheduling events int[]
-- $4 fence bigint
-- $5 children text[]
insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
select $1::text,
       clock_timestamp(),
       case when i.status = 'Completed' then 'ChildCompleted' else 'ChildFailed' end,
       $2::bigint,
       child.event,
       case
         when i.status = 'Completed' then i.output
         else coalesce(i.error, '{"name":"Error","message":"the child is not there any more","code":"NOT_FOUND"}')
       end
from unnest($3::int[], $5::text[]) as child (event, instance)
left join /*schema*/instance i on i.instance = child.instance and i.parent_instance = $1::text
where (select true from /*schema*/turn_queue q where q.instance = $1::text and q.fence = $4::bigint)
  and (i.instance is null or i.finished_at is not null)
on conflict (instance, execution, source) where source is not null do nothing
