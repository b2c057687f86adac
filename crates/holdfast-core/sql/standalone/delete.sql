-- Forgets a standalone activity that has ended.
-- Rows: 1. Locks: one row. Index: ended_activity_pkey.
-- $1 id text
delete from /*schema*/ended_activity e where e.id = $1::text returning e.id
