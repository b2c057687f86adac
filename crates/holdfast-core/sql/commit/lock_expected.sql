-- Locks every turn row that the commit settles or addresses, and fails the whole flight, which then goes again in two, unless
-- each turn's lease stands and no request to cancel waits for a turn that completes.
-- Rows: the instances given; none come back. Locks: turn rows, in the order given. Index: turn_queue_pkey, inbox_pkey.
-- $1 instances text[]
-- $2 fences bigint[] (null: addressed only)
-- $3 owners text[]
-- $4 owner epochs bigint[]
-- $5 completes boolean[]
select wanted.instance
from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[]) as wanted (instance, fence, owner, owner_epoch, completes)
left join lateral (
  select q.fence, q.owner, q.owner_epoch
  from /*schema*/turn_queue q
  where q.instance = wanted.instance
  for no key update
) held on true
where case
        when wanted.fence is null then false
        when held.fence is distinct from wanted.fence
          or (held.owner is not null and (held.owner <> wanted.owner or held.owner_epoch <> wanted.owner_epoch))
          or (wanted.completes and (
            select true from /*schema*/inbox m where m.instance = wanted.instance and m.kind = 'CancelRequested' limit 1
          )) then ('holdfast: not as expected, ' || wanted.fence)::int > 0
        else false
      end
