-- History of one execution.
-- Rows: its events. Locks: none. Index: history_pkey.
-- $1 instance text
-- $2 execution bigint
select h.event_id,
       h.kind,
       h.source,
       h.at_ms,
       h.data
from /*schema*/history h
where h.instance = $1::text and h.execution = $2::bigint
order by h.event_id
