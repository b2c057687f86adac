-- Of tasks whose lease is gone, those that somebody else has or has ended: the row is there, or a result is. What is not
-- among them was cancelled or deleted.
-- A result is recorded by a later turn than its task, so in a row that begins behind the task.
-- Rows: the tasks given; history is read only for those. Locks: none.
-- Index: activity_queue_pkey, inbox_source_key, history_turn_pkey, ended_activity_pkey.
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
    from /*schema*/history_turn packed
    where packed.instance = task.instance and packed.execution = task.execution and packed.event_id > task.event
      and string_to_array(packed.kinds, ' ') && array['ActivityCompleted@' || task.event, 'ActivityFailed@' || task.event]
    limit 1
  ),
  (
    select task.execution = 0 and e.status <> 'Cancelled'
    from /*schema*/ended_activity e
    where e.id = task.instance
  ),
  false
)
