-- Ends activity tasks whose lease stands: the row goes, its instance gets the message and is woken unless it is parked.
-- Rows: the tasks given. Locks: activity rows in the order given, after their turn rows. Index: activity_queue_pkey,
-- turn_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[]
-- $5 owners text[]
-- $6 owner epochs bigint[]
-- $7 message kinds text[]
-- $8 message data text[]
with ended as (
  delete from /*schema*/activity_queue a
  using unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::bigint[], $7::text[], $8::text[])
    with ordinality as task (instance, execution, event, fence, owner, owner_epoch, kind, data, ix)
  where a.instance = task.instance
    and a.execution = task.execution
    and a.event = task.event
    and a.fence = task.fence
    and (a.owner is null or (a.owner = task.owner and a.owner_epoch = task.owner_epoch))
  returning task.ix, task.instance, task.execution, task.event, task.kind, task.data
),
told as (
  insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
  select ended.instance, clock_timestamp(), ended.kind, ended.execution, ended.event, ended.data
  from ended
  where ended.execution > 0
    and exists (select from /*schema*/turn_queue q where q.instance = ended.instance)
  order by ended.ix
  on conflict (instance, execution, source) where source is not null do nothing
  returning instance
),
woken as (
  update /*schema*/turn_queue q
  set due_at = clock_timestamp()
  where q.instance = any (array(select told.instance from told))
    and q.owner is null
    and q.name is not null
    and not q.parked
    and q.due_at > clock_timestamp()
)
select ended.ix,
       ended.execution > 0
         and (select true from /*schema*/turn_queue q where q.instance = ended.instance) is not null as told
from ended
