-- Locks every turn row that the commit settles or addresses, and fails the whole flight, after which it is found out what stands, unless
-- each turn's lease stands.
-- Rows: the instances given; none come back. Locks: turn rows, in the order given. Index: turn_queue_pkey.
-- $1 instances text[]
-- $2 fences bigint[] (null: addressed only)
-- $3 owners text[]
-- $4 owner epochs bigint[]
select wanted.instance
from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) as wanted (instance, fence, owner, owner_epoch)
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
          then ('holdfast: not as expected, ' || wanted.fence)::int > 0
        else false
      end
