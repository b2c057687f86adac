-- Whether the schema has been made: the migration table's existence, without a lock.
-- Rows: 1. No parameters.
select to_regclass('/*schema*/migration') is not null as found
