-- Somebody waits for the ends of standalone activities: they are kept for a while once they have ended.
-- Rows: the ids given, in key order. Locks: activity rows, waiting shortly. Index: activity_queue_pkey.
-- $1 ids text[]
-- $2 shortest retention bigint (ms)
with wanted as materialized (
  select a.instance
  from /*schema*/activity_queue a
  where a.instance = any ($1::text[])
    and a.execution = 0
    and a.event = 0
    and a.retention_ms >= 0
    and a.retention_ms < $2::bigint
  order by a.instance
  for update of a
)
update /*schema*/activity_queue a
set retention_ms = $2::bigint
from wanted
where a.instance = wanted.instance and a.execution = 0 and a.event = 0
returning a.instance
