-- Which server session answers.
-- Rows: 1. No parameters.
select pg_backend_pid() as pid
