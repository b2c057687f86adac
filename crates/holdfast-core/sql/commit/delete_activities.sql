-- Deletes the activity tasks that surviving turns no longer want, leased or not; a running body learns it with its
-- node's next heartbeat.
-- Rows: the tasks given. Locks: activity rows, after their turn rows. Index: activity_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
delete from /*schema*/activity_queue a
using unnest($1::text[], $2::bigint[], $3::int[]) as cancelled (instance, execution, event)
where a.instance = cancelled.instance
  and a.execution = cancelled.execution
  and a.event = cancelled.event
