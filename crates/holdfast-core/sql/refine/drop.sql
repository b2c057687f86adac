-- Takes the schemas of a refinement away.
-- Rows: none. Locks: the tables.
drop schema if exists /*schema*/clock cascade;
drop schema if exists /*schema*/tables cascade;
