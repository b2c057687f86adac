-- Due messages of the given instances, in id order for each.
-- Rows: at most $2 for each instance. Locks: none. Index: inbox_pkey.
-- $1 instances text[]
-- $2 limit bigint
select wanted.instance,
       message.id,
       message.kind,
       message.execution,
       message.source,
       message.name,
       message.data
from unnest($1::text[]) with ordinality as wanted (instance, ix)
cross join lateral (
  select m.id, m.kind, m.execution, m.source, m.name, m.data
  from /*schema*/inbox m
  where m.instance = wanted.instance and m.due_at <= statement_timestamp()
  order by m.id
  limit $2::bigint
) message
order by wanted.ix, message.id
