-- Leases that an earlier run of these turns may have given to their nodes anew, which did not hear of it: they are due now, without the
-- delivery. One that was claimed since may be in progress, and activities may run under it without a row.
-- Rows: the turns given. Locks: none but the turn rows already locked. Index: turn_queue_pkey.
-- $1 instances text[]
-- $2 fences bigint[] (that were settled)
-- $3 owners text[]
-- $4 owner epochs bigint[]
update /*schema*/turn_queue q
set fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    due_at = clock_timestamp(),
    cut_off = true,
    deliveries = greatest(q.deliveries - 1, 0)
from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) as turn (instance, fence, owner, owner_epoch)
where q.instance = turn.instance
  and q.last_fence = turn.fence
  and (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch) is true
