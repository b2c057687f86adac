-- History of one execution, packed.
-- Rows: its events. Locks: none. Index: history_turn_pkey.
-- $1 instance text
-- $2 execution bigint
select packed.event_id,
       packed.events,
       packed.at_ms,
       packed.kinds,
       packed.data
from /*schema*/history_turn packed
where packed.instance = $1::text and packed.execution = $2::bigint
order by packed.event_id
