-- Continue-as-new of surviving turns: the execution that closed is archived, its instance holds the next one.
-- Rows: the turns given. Locks: instance rows under their turn rows' locks. Index: turn_queue_pkey, instance_pkey.
-- $1 instances text[]
-- $2 closed executions bigint[]
-- $3 next inputs text[]
-- $4 next versions text[]
-- $5 carried messages text[]
with archived as (
  insert into /*schema*/execution (instance, execution, status, version, input, output, started_at, finished_at)
  select i.instance, i.execution, 'ContinuedAsNew', i.version, i.input, next.input, i.started_at, clock_timestamp()
  from unnest($1::text[], $2::bigint[], $3::text[]) as next (instance, execution, input)
  join /*schema*/instance i on i.instance = next.instance and i.execution = next.execution
)
update /*schema*/instance i
set execution = next.execution + 1,
    input = next.input,
    version = next.version,
    carried = next.carried,
    started_at = null,
    updated_at = clock_timestamp()
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[])
  as next (instance, execution, input, version, carried)
where i.instance = next.instance
  and i.execution = next.execution
