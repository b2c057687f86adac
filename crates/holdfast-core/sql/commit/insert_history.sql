-- Appends the events of surviving turns.
-- Rows: the events given. Locks: none. Index: turn_queue_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 event ids int[]
-- $4 kinds text[]
-- $5 sources int[]
-- $6 times bigint[] (ms)
-- $7 data text[]
insert into /*schema*/history (instance, execution, event_id, kind, source, at_ms, data)
select event.instance, event.execution, event.event_id, event.kind, event.source, event.at_ms, event.data
from unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::int[], $6::bigint[], $7::text[])
  as event (instance, execution, event_id, kind, source, at_ms, data)
