-- Activity tasks whose lease stands. They are ended by a later transaction, which makes sure of it again.
-- Rows: the tasks given. Locks: none. Index: activity_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[]
-- $5 owners text[]
-- $6 owner epochs bigint[]
select task.ix
from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::bigint[])
  with ordinality as task (instance, execution, event, fence, owner, owner_epoch, ix)
where (
  select true
  from /*schema*/activity_queue a
  where a.instance = task.instance
    and a.execution = task.execution
    and a.event = task.event
    and a.fence = task.fence
    and (a.owner is null or (a.owner = task.owner and a.owner_epoch = task.owner_epoch))
)
