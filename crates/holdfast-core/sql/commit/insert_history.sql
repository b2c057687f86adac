-- Appends the events of surviving turns, packed.
-- Rows: the rows given. Locks: none. Index: history_turn_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 first event ids int[]
-- $4 numbers of events int[]
-- $5 times bigint[] (ms)
-- $6 kinds text[]
-- $7 data text[]
insert into /*schema*/history_turn (instance, execution, event_id, events, at_ms, kinds, data)
select packed.instance, packed.execution, packed.event_id, packed.events, packed.at_ms, packed.kinds, packed.data
from unnest($1::text[], $2::bigint[], $3::int[], $4::int[], $5::bigint[], $6::text[], $7::text[])
  as packed (instance, execution, event_id, events, at_ms, kinds, data)
