-- Keeps a server session busy for a moment and says which one it is. Behind a transaction pooler the next caller then
-- gets another one.
-- Rows: 1. No parameters.
select pg_backend_pid() as pid, pg_sleep(0.2)::text as slept
