-- Which results that a turn uses without having read them lie in the inbox: each was committed before its turn was.
-- Rows: the results given. Locks: none (turn rows are locked). Index: inbox_source_key.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
select used.ix
from unnest($1::text[], $2::bigint[], $3::int[]) with ordinality as used (instance, execution, source, ix)
where (
  select true
  from /*schema*/inbox m
  where m.instance = used.instance and m.execution = used.execution and m.source = used.source
)
