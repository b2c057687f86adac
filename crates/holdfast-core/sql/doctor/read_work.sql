-- Nodes, overdue work and what has ended, as one JSON object.
-- Rows: the nodes, the due rows and the ended instances, each counted to 100 000 at most. Locks: none.
-- Index: turn_queue_due_at_idx, activity_queue_due_at_idx, activity_queue_any_tag_idx.
-- No parameters.
select json_build_object(
    'liveNodes', (
      select count(*) from /*schema*/node n
      where n.heartbeat_at >= statement_timestamp() - n.stale_after
    ),
    'staleNodes', (
      select count(*) from /*schema*/node n
      where n.heartbeat_at < statement_timestamp() - n.stale_after
    ),
    'dueTurns', (
      select count(*) from (
        select from /*schema*/turn_queue q
        where q.due_at <= statement_timestamp() and q.name is not null
        limit 100000
      ) due
    ),
    'oldestTurnSeconds', (
      select extract(epoch from clock_timestamp() - min(q.due_at))::bigint
      from /*schema*/turn_queue q
      where q.due_at <= statement_timestamp() and q.name is not null
    ),
    'dueActivities', (
      select count(*) from (
        select from /*schema*/activity_queue a where a.due_at <= statement_timestamp() limit 100000
      ) due
    ),
    'oldestActivitySeconds', (
      select extract(epoch from clock_timestamp() - min(a.due_at))::bigint
      from /*schema*/activity_queue a
      where a.due_at <= statement_timestamp()
    ),
    'parked', (select count(*) from (select from /*schema*/instance i where i.parked_at is not null limit 100000) parked),
    'poisoned', (
      select count(*) from (
        select from /*schema*/instance i
        where i.status = 'Failed'
          and i.finished_at > statement_timestamp() - interval '1 day'
          and i.error_code = 'POISONED'
        limit 100000
      ) poisoned
    ),
    'ended', (
      select count(*) from (
        select from /*schema*/instance i where i.finished_at is not null limit 100000
      ) ended
    )
  )::text as facts
