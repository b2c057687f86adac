-- Proves that a session answers, all the way to the server.
-- Rows: one, of no table. Locks: none. Index: none.
select 1;
