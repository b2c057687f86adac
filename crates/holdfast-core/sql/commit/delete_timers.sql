-- Deletes the timers that surviving turns no longer want.
-- Rows: the timers given. Locks: inbox rows under their turn row's lock. Index: inbox_source_key.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
delete from /*schema*/inbox m
using unnest($1::text[], $2::bigint[], $3::int[]) as cancelled (instance, execution, source)
where m.instance = cancelled.instance
  and m.execution = cancelled.execution
  and m.source = cancelled.source
