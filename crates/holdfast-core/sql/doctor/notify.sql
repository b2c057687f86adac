-- Sends a hint to the listener of this check.
-- Rows: 1. No parameters.
select pg_notify('holdfast_doctor', pg_backend_pid()::text) is null as sent
