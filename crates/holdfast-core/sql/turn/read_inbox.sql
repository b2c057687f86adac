-- Due messages of the given instances, in id order for each, until their data has $3 bytes; the first always comes. Only
-- timers wait for their time: a clock that was set back does not let a message overtake one that came before.
-- Rows: at most $2 for each instance. Locks: none. Index: inbox_pkey. The length of a stored text is read without it.
-- $1 instances text[]
-- $2 limit bigint
-- $3 bytes bigint
select wanted.instance,
       message.id,
       message.kind,
       message.execution,
       message.source,
       message.name,
       message.data
from unnest($1::text[]) with ordinality as wanted (instance, ix)
cross join lateral (
  select m.id, m.kind, m.execution, m.source, m.name, m.data,
         coalesce(sum(octet_length(m.data)) over (order by m.id rows between unbounded preceding and 1 preceding), 0) as bytes_before
  from /*schema*/inbox m
  where m.instance = wanted.instance and (m.due_at <= statement_timestamp() or m.kind <> 'TimerFired')
  order by m.id
  limit $2::bigint
) message
where message.bytes_before < $3::bigint
order by wanted.ix, message.id
