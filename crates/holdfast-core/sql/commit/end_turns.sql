-- Settles the turns that end their instance: the turn row goes, and with it what was left in the inbox.
-- Rows: the turns given and their messages. Locks: none but the turn rows already locked. Index: turn_queue_pkey,
-- inbox_pkey.
-- $1 instances text[]
-- $2 fences bigint[]
-- $3 owners text[]
-- $4 owner epochs bigint[]
-- $5 poisoned boolean[] (what is left in the inbox stays, for a retry)
with ended as (
  delete from /*schema*/turn_queue q
  using unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[])
    with ordinality as turn (instance, fence, owner, owner_epoch, poisoned, ix)
  where q.instance = turn.instance
    and q.fence = turn.fence
    and (q.owner is null or (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch))
  returning turn.ix, q.instance, turn.poisoned
),
dropped as (
  delete from /*schema*/inbox m
  using ended
  where m.instance = ended.instance and not ended.poisoned
)
select ended.ix from ended
