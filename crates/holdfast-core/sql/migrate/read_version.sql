-- The newest migration that was applied, without a lock.
-- Rows: 1, over a table with one row for each version. No parameters.
select coalesce(max(version), 0) as version from /*schema*/migration
