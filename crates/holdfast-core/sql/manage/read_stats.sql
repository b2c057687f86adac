-- Size of the current execution of an instance; no row when there is no such instance. Bytes are those of the events' data.
-- Rows: its events; their data is measured, not read. Locks: none. Index: instance_pkey, history_pkey.
-- $1 instance text
select i.carried, recorded.events, recorded.bytes
from /*schema*/instance i
cross join lateral (
  select count(*) as events, coalesce(sum(octet_length(h.data)), 0)::bigint as bytes
  from /*schema*/history h
  where h.instance = i.instance and h.execution = i.execution
) recorded
where i.instance = $1::text
