-- Queues a standalone activity anew that ended without success: due now, with its tries and deliveries from the start. What its body told
-- last is kept, so that it can go on.
-- Rows: 1. Locks: one row of each table. Index: ended_activity_pkey, activity_queue_pkey.
-- $1 id text
with taken as (
  delete from /*schema*/ended_activity e
  where e.id = $1::text and e.status <> 'Completed'
  returning e.*
)
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, retention_ms, tag, heartbeat, due_at, scheduled_at
)
select t.id, 0, 0, t.name, t.input, t.retry, t.timeout_ms, t.retention_ms, t.tag, t.heartbeat, clock_timestamp(), clock_timestamp()
from taken t
returning instance
