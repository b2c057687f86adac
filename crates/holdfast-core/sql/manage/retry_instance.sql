-- A poisoned instance that is retried runs again.
-- Rows: one. Locks: its instance row. Index: turn_queue_pkey, instance_pkey.
-- $1 instance text
-- $2 execution bigint
-- $3 history length int (as read)
-- $4 fence bigint
update /*schema*/instance i
set status = 'Running',
    error = null,
    error_code = null,
    finished_at = null,
    history_len = $3::int + 1,
    updated_at = clock_timestamp()
where i.instance = $1::text
  and i.execution = $2::bigint
  and (select true from /*schema*/turn_queue q where q.instance = $1::text and q.fence = $4::bigint)
returning i.instance
