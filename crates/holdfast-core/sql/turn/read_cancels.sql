-- The first cancel request of each of the given instances. A parked one is woken by it alone, so it is read first however
-- many messages came before it.
-- Rows: the messages of the instances given until the first such. Locks: none. Index: inbox_pkey.
-- $1 instances text[]
select wanted.instance,
       message.id,
       message.data
from unnest($1::text[]) as wanted (instance)
cross join lateral (
  select m.id, m.data
  from /*schema*/inbox m
  where m.instance = wanted.instance and m.kind = 'CancelRequested'
  order by m.id
  limit 1
) message
