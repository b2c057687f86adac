-- The turn row of a poisoned instance that is retried: due now, its fence the mark of this retry. Nothing is made when the
-- instance is not as it was read, or somebody else retries it.
-- Rows: one. Locks: the instance row and the new turn row. Index: instance_pkey, turn_queue_pkey.
-- $1 instance text
-- $2 execution bigint
-- $3 history length int (as read)
-- $4 fence bigint
-- $5 replay version bigint (of who writes the act)
with poisoned as materialized (
  select i.instance, i.name, i.version
  from /*schema*/instance i
  where i.instance = $1::text and i.status = 'Failed' and i.error_code = 'POISONED'
    and i.execution = $2::bigint and i.history_len = $3::int
  for update
)
insert into /*schema*/turn_queue (instance, due_at, fence, last_fence, name, version, execution, history_len, replay_version)
select poisoned.instance, clock_timestamp(), $4::bigint, $4::bigint, poisoned.name, poisoned.version, $2::bigint, $3::int + 1,
       $5::bigint
from poisoned
on conflict (instance) do nothing
