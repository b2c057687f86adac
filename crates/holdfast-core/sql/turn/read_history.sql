-- History of the given executions, in event order for each.
-- Rows: the history of each. Locks: none. Index: history_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
select wanted.instance,
       recorded.event_id,
       recorded.kind,
       recorded.source,
       recorded.at_ms,
       recorded.data
from unnest($1::text[], $2::bigint[]) with ordinality as wanted (instance, execution, ix)
cross join lateral (
  select h.event_id, h.kind, h.source, h.at_ms, h.data
  from /*schema*/history h
  where h.instance = wanted.instance and h.execution = wanted.execution
  order by h.event_id
  offset 0
) recorded
order by wanted.ix, recorded.event_id
