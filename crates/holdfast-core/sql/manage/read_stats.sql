-- Size of the current execution of an instance; no row when there is no such instance. Bytes are those of the events' data.
-- Rows: its events and values; their data is measured, not read. Locks: none. Index: instance_pkey, history_turn_pkey, kv_pkey.
-- $1 instance text
select i.carried, recorded.events, recorded.bytes, kept.keys, kept.value_bytes
from /*schema*/instance i
cross join lateral (
  select coalesce(sum(packed.events), 0) as events,
         -- Without what stands between two events.
         coalesce(sum(octet_length(packed.data) - packed.events + 1), 0) as bytes
  from /*schema*/history_turn packed
  where packed.instance = i.instance and packed.execution = i.execution
) recorded
cross join lateral (
  select count(*) as keys, coalesce(sum(octet_length(v.value)), 0)::bigint as value_bytes
  from /*schema*/kv v
  where v.instance = i.instance
) kept
where i.instance = $1::text
