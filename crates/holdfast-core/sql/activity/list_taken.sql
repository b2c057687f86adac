-- Of tasks whose lease is gone, those that somebody else has or has ended: the row is there, or a result is. What is not
-- among them was cancelled or deleted.
-- Rows: the tasks given; history is read only for those. Locks: none.
-- Index: activity_queue_pkey, inbox_source_key, history_pkey, ended_activity_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[] (they only come back)
select task.fence
from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[]) as task (instance, execution, event, fence)
where coalesce(
  (
    select true
    from /*schema*/activity_queue a
    where a.instance = task.instance and a.execution = task.execution and a.event = task.event
  ),
  (
    select true
    from /*schema*/inbox m
    where m.instance = task.instance and m.execution = task.execution and m.source = task.event
  ),
  (
    select true
    from /*schema*/history h
    where h.instance = task.instance and h.execution = task.execution and h.event_id > task.event
      and h.source = task.event and h.kind in ('ActivityCompleted', 'ActivityFailed')
    limit 1
  ),
  (
    select task.execution = 0 and e.status <> 'Cancelled'
    from /*schema*/ended_activity e
    where e.id = task.instance
  ),
  false
)
