-- First turns that an earlier run of these starts may have leased to a node that did not hear of it: they are due now. Their
-- delivery counts, as nobody can tell here whether they began. One that wrote events and kept its lease was heard of.
-- Rows: the starts given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, history_turn_pkey.
-- $1 instances text[]
-- $2 owners text[]
-- $3 owner epochs bigint[]
update /*schema*/turn_queue q
set fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    due_at = clock_timestamp()
from unnest($1::text[], $2::text[], $3::bigint[]) as begun (instance, owner, owner_epoch)
where q.instance = begun.instance
  and (q.owner = begun.owner and q.owner_epoch = begun.owner_epoch) is true
  and q.deliveries = 1
  and q.last_fence = 0
  and q.history_len = 0
  and (select true from /*schema*/history_turn packed where packed.instance = q.instance limit 1) is null
