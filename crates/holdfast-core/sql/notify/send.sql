-- Sends a hint. Never part of a commit of work: NOTIFY holds a lock that makes the commits of a whole server queue up.
-- Rows: 1. Locks: none on tables.
-- $1 channel text
-- $2 payload text
select pg_notify($1::text, $2::text)
