-- What was accepted and can never end: no row in a sound database. One statement, so one moment; runtimes may go on.
-- Rows: every table, whole; at most $1 findings. Locks: none. Index: none, for tests and incidents.
-- $1 limit bigint
select found.what, found.instance, found.event
from (
  select 'an instance that has not ended has no turn row' as what, i.instance, null::int as event
  from /*schema*/instance i
  where i.finished_at is null
    and not exists (select from /*schema*/turn_queue q where q.instance = i.instance)
  union all
  select 'a turn row belongs to no instance that runs', q.instance, null
  from /*schema*/turn_queue q
  where q.name is not null
    and not exists (select from /*schema*/instance i where i.instance = q.instance and i.finished_at is null)
  union all
  select 'an instance is parked in one table only', q.instance, null
  from /*schema*/turn_queue q
  join /*schema*/instance i on i.instance = q.instance
  where q.parked <> (i.parked_at is not null)
  union all
  select 'a message belongs to no instance', m.instance, m.source
  from /*schema*/inbox m
  where not exists (select from /*schema*/turn_queue q where q.instance = m.instance)
    and not exists (select from /*schema*/instance i where i.instance = m.instance and i.error_code = 'POISONED')
  union all
  select 'a message does not make its turn due', m.instance, m.source
  from /*schema*/inbox m
  join /*schema*/turn_queue q on q.instance = m.instance
  where q.owner is null and q.name is not null and not q.parked
    -- A result that a turn has in hand wakes within a second; what was given up waits for its back-off.
    and q.due_at > greatest(m.due_at, q.starts_at, statement_timestamp()) + interval '1 second'
    and (q.deliveries = 0 or q.due_at = 'infinity')
  union all
  select 'an activity belongs to no execution that runs', a.instance, a.event
  from /*schema*/activity_queue a
  where a.execution > 0
    and not exists (
      select
      from /*schema*/instance i
      where i.instance = a.instance and i.execution = a.execution and i.finished_at is null
    )
  union all
  select 'a history has a gap', h.instance, max(h.event_id)
  from /*schema*/history h
  group by h.instance, h.execution
  having max(h.event_id) <> count(*)
  union all
  select 'a history is not as long as its turn row says', q.instance, q.history_len
  from /*schema*/turn_queue q
  where q.name is not null
    and q.history_len <> (
      select count(*) from /*schema*/history h where h.instance = q.instance and h.execution = q.execution
    )
  union all
  select 'an execution has two ends', h.instance, max(h.event_id)
  from /*schema*/history h
  group by h.instance, h.execution
  having count(*) filter (
      where h.kind in ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')
    ) - count(*) filter (where h.kind = 'OrchestrationRetried') > 1
  union all
  select 'a step has two results', h.instance, h.source
  from /*schema*/history h
  where h.kind in ('ActivityCompleted', 'ActivityFailed', 'TimerFired', 'SubOrchestrationCompleted', 'SubOrchestrationFailed')
  group by h.instance, h.execution, h.source
  having count(*) > 1
  union all
  select 'nobody works on a step that is waited for', h.instance, h.event_id
  from /*schema*/history h
  join /*schema*/instance i on i.instance = h.instance and i.execution = h.execution and i.finished_at is null
  where h.kind in ('ActivityScheduled', 'TimerCreated', 'SubOrchestrationScheduled')
    and not (h.kind = 'ActivityScheduled' and h.data like '%"local":true%')
    -- A cancellation takes open timers back without an event of their own.
    and not (h.kind = 'TimerCreated' and exists (
      select
      from /*schema*/history cancelled
      where cancelled.instance = h.instance and cancelled.execution = h.execution
        and cancelled.kind = 'OrchestrationCancelRequested' and cancelled.event_id > h.event_id
    ))
    and not exists (
      select
      from /*schema*/history later
      where later.instance = h.instance and later.execution = h.execution and later.source = h.event_id
        and later.event_id > h.event_id
        and not (later.kind = 'ActivityCancelRequested' and later.data like '%orchestration_terminal_failed%')
    )
    and not exists (
      select
      from /*schema*/inbox m
      where m.instance = h.instance and m.execution = h.execution and m.source = h.event_id
    )
    and not exists (
      select
      from /*schema*/activity_queue a
      where a.instance = h.instance and a.execution = h.execution and a.event = h.event_id
    )
    and not exists (
      select
      from /*schema*/instance child
      where child.parent_instance = h.instance and child.parent_execution = h.execution
        and child.parent_event = h.event_id and child.finished_at is null
    )
) found
order by found.instance collate "C", found.what collate "C", found.event
limit $1::bigint
