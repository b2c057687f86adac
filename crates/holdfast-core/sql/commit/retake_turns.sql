-- Leases instances whose turns were settled a moment ago to the nodes of these turns again, as a claim would, when their node rows
-- are there and no message waits: the delivery counts, a new fence is minted, and due is now + timeout.
-- Rows: the turns given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, node_pkey.
-- $1 instances text[]
-- $2 fences bigint[] (that were settled)
-- $3 owners text[]
-- $4 owner epochs bigint[]
-- $5 leases bigint[] (ms)
update /*schema*/turn_queue q
set fence = nextval('/*schema*/fence_seq'),
    owner = node.id,
    owner_epoch = node.epoch,
    leased_at = clock_timestamp(),
    deliveries = q.deliveries + 1,
    due_at = clock_timestamp() + make_interval(secs => turn.lease_ms / 1000.0)
from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) with ordinality
  as turn (instance, fence, owner, owner_epoch, lease_ms, ix)
join /*schema*/node node on node.id = turn.owner and node.epoch = turn.owner_epoch
where q.instance = turn.instance
  and q.last_fence = turn.fence
  and q.owner is null
  and q.due_at > clock_timestamp()
returning turn.ix, q.fence as next_fence
