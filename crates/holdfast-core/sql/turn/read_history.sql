-- History of the given executions, packed, in event order for each.
-- Rows: the history of each. Locks: none. Index: history_turn_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
select wanted.instance,
       recorded.event_id,
       recorded.events,
       recorded.at_ms,
       recorded.kinds,
       recorded.data
from unnest($1::text[], $2::bigint[]) with ordinality as wanted (instance, execution, ix)
cross join lateral (
  select packed.event_id, packed.events, packed.at_ms, packed.kinds, packed.data
  from /*schema*/history_turn packed
  where packed.instance = wanted.instance and packed.execution = wanted.execution
  order by packed.event_id
  offset 0
) recorded
order by wanted.ix, recorded.event_id
