-- What was accepted and can never end: no row in a sound database. One statement, so one moment; runtimes may go on.
-- The histories are unpacked once, and what is asked of each is counted once. While somebody holds a turn row, or its last lease
-- is cut off, it may be behind its history, and an activity may have no row.
-- Rows: every table, whole; at most $1 findings. Locks: none. Index: none, for tests and incidents.
-- $1 limit bigint
with recorded as materialized (
  select h.instance, h.execution, h.event_id, h.kind, h.source,
         h.kind = 'ActivityScheduled' and h.data like '%"local":true%' as local,
         h.kind = 'ActivityCancelRequested' and h.data like '%orchestration_terminal_failed%' as late
  from /*schema*/history h
),
written as materialized (
  select h.instance, h.execution, count(*) as events, max(h.event_id) as last_event,
         max(h.event_id) filter (where h.kind = 'OrchestrationCancelRequested') as cancelled_at,
         count(*) filter (
           where h.kind in ('OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew')
         ) - count(*) filter (where h.kind = 'OrchestrationRetried') as ends
  from recorded h
  group by h.instance, h.execution
),
unanswered as materialized (
  select h.instance, h.execution, coalesce(h.source, h.event_id) as event_id, max(h.kind) as kind
  from recorded h
  where (h.kind in ('ActivityScheduled', 'TimerCreated', 'SubOrchestrationScheduled') and not h.local)
     or (h.source is not null and not h.late)
  group by h.instance, h.execution, coalesce(h.source, h.event_id)
  having bool_or(h.source is null)
    and coalesce(max(h.event_id) filter (where h.source is not null), 0) <= coalesce(h.source, h.event_id)
)
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
  select 'a history has a gap', w.instance, w.last_event
  from written w
  where w.last_event <> w.events
  union all
  select 'a history is not as long as its turn row says', q.instance, q.history_len
  from /*schema*/turn_queue q
  left join written w on w.instance = q.instance and w.execution = q.execution
  where q.name is not null
    and case
          when q.owner is not null or q.cut_off then q.history_len > coalesce(w.events, 0)
          else q.history_len <> coalesce(w.events, 0)
        end
  union all
  select 'an execution has two ends', w.instance, w.last_event
  from written w
  where w.ends > 1
  union all
  select 'a step has two results', h.instance, h.source
  from recorded h
  where h.kind in ('ActivityCompleted', 'ActivityFailed', 'TimerFired', 'SubOrchestrationCompleted', 'SubOrchestrationFailed')
  group by h.instance, h.execution, h.source
  having count(*) > 1
  union all
  select 'nobody works on a step that is waited for', h.instance, h.event_id
  from unanswered h
  join written w on w.instance = h.instance and w.execution = h.execution
  join /*schema*/instance i on i.instance = h.instance and i.execution = h.execution and i.finished_at is null
  -- A cancellation takes open timers back without an event of their own.
  where not (h.kind = 'TimerCreated' and coalesce(w.cancelled_at, 0) > h.event_id)
    and not (h.kind = 'ActivityScheduled' and exists (
      select
      from /*schema*/turn_queue q
      where q.instance = h.instance and q.execution = h.execution and (q.owner is not null or q.cut_off)
    ))
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
