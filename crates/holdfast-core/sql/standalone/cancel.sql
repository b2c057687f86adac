-- Cancels a standalone activity that has not ended, leased or not: it is kept as cancelled for its retention, a minute at
-- least. A running body learns it with its node's next heartbeat. The fence of the kept row is nobody's.
-- Rows: 1. Locks: one activity row. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 id text
-- $2 error text
-- $3 shortest retention bigint (ms)
with cancelled as (
  delete from /*schema*/activity_queue a
  where a.instance = $1::text and a.execution = 0 and a.event = 0
  returning a.*
),
kept as (
  insert into /*schema*/ended_activity (
    id, name, input, status, result, heartbeat, fence, attempt, deliveries, retry, timeout_ms, retention_ms, tag, scheduled_at, keep_until
  )
  select c.instance, c.name, c.input, 'Cancelled', $2::text, c.heartbeat, 0, c.attempt, c.deliveries, c.retry, c.timeout_ms,
         c.retention_ms, c.tag, c.scheduled_at,
         case
           when c.retention_ms < 0 then 'infinity'
           else clock_timestamp() + make_interval(secs => greatest(c.retention_ms, $3::bigint) / 1000.0)
         end
  from cancelled c
)
select c.instance from cancelled c
