-- Activity tasks that do not hold their lease because an earlier commit settled them and its reply was lost: their
-- message or their event is there, or the row says so (a retry). A standalone one that is gone is done when it was kept
-- under this lease, or not kept at all.
-- A result is recorded by a later turn than its task, so in a row that begins behind the task.
-- Rows: the tasks given; history is read only for those. Locks: none (turn rows are locked).
-- Index: activity_queue_pkey, inbox_source_key, history_turn_pkey, ended_activity_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 fences bigint[] (null: it ran without a row)
select task.ix
from unnest($1::text[], $2::bigint[], $3::int[], $4::bigint[]) with ordinality as task (instance, execution, event, fence, ix)
where case
        when (
          select true
          from /*schema*/activity_queue a
          where a.instance = task.instance and a.execution = task.execution and a.event = task.event
            and a.fence = task.fence
        ) then false
        when (
          select true
          from /*schema*/activity_queue a
          where a.instance = task.instance and a.execution = task.execution and a.event = task.event
            and a.last_fence = task.fence
        ) then true
        when task.execution = 0 then (
          select true
          from /*schema*/activity_queue a
          where a.instance = task.instance and a.execution = 0 and a.event = 0
        ) is null and coalesce((select e.fence = task.fence from /*schema*/ended_activity e where e.id = task.instance), true)
        when (
          select true
          from /*schema*/inbox m
          where m.instance = task.instance and m.execution = task.execution and m.source = task.event
        ) then true
        else (
          select true
          from /*schema*/history_turn packed
          where packed.instance = task.instance and packed.execution = task.execution and packed.event_id > task.event
            and string_to_array(packed.kinds, ' ') && array['ActivityCompleted@' || task.event, 'ActivityFailed@' || task.event]
          limit 1
        )
      end
