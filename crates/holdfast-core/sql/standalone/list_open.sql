-- Those of the given standalone activities that have not ended, for waiters, and whether they are kept for a while once they
-- have: one index look-up each.
-- Rows: the ids given. Locks: none. Index: activity_queue_pkey.
-- $1 ids text[]
-- $2 shortest retention bigint (ms)
select a.instance, a.retention_ms < 0 or a.retention_ms >= $2::bigint as stays
from /*schema*/activity_queue a
where a.instance = any ($1::text[]) and a.execution = 0 and a.event = 0
