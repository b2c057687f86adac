-- Ends activity tasks, and fails the whole flight, after which it is found out what stands, unless the lease of each stands.
-- Rows: the tasks given; none come back. Locks: activity rows in the order given, after their turn rows. Index:
-- activity_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[]
-- $5 owners text[]
-- $6 owner epochs bigint[]
with ended as (
  delete from /*schema*/activity_queue a
  using unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::bigint[])
    as task (instance, execution, event, fence, owner, owner_epoch)
  where a.instance = task.instance
    and a.execution = task.execution
    and a.event = task.event
    and a.fence = task.fence
    and (a.owner is null or (a.owner = task.owner and a.owner_epoch = task.owner_epoch))
  returning 1
)
select counted.tasks
from (select count(*) as tasks from ended) counted
cross join (select count(*) as tasks from unnest($1::text[]) as wanted (instance)) wanted
where case
        when counted.tasks = wanted.tasks then false
        else ('holdfast: not as expected, ' || counted.tasks)::int > 0
      end
