-- Turns that complete while an accepted request to cancel waits unread give way to it: their lease ends unsettled, so that
-- nothing of them is written, and the instance is due again with the request. What ran under it without a row is found out by
-- whoever claims it.
-- Rows: the turns given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, inbox_pkey.
-- $1 instances text[]
-- $2 fences bigint[]
update /*schema*/turn_queue q
set fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    due_at = clock_timestamp(),
    deliveries = greatest(q.deliveries - 1, 0),
    cut_off = true
from unnest($1::text[], $2::bigint[]) with ordinality as completing (instance, fence, ix)
where q.instance = completing.instance
  and q.fence = completing.fence
  and exists (
    select
    from /*schema*/inbox m
    where m.instance = q.instance
      and m.kind = 'CancelRequested'
  )
returning completing.ix
