-- Makes the missing turn rows of instances that a client addresses or a surviving turn starts; not for ended ones.
-- The first statement of a commit. Rows: the instances given. Locks: the new turn rows, ascending (a concurrent insert
-- of the same row is waited for). Index: turn_queue_pkey, instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[] (from 1; 0 is a client's)
-- $6 instances text[]
with passed as materialized (
  select array_agg((
    select true
    from /*schema*/turn_queue q
    where q.instance = turn.instance
      and q.fence = turn.fence
      and (q.owner is null or (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch))
  ) order by turn.ix) as ok
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) with ordinality
    as turn (instance, fence, owner, owner_epoch, ix)
)
insert into /*schema*/turn_queue (instance)
select wanted.instance
from unnest($5::int[], $6::text[]) as wanted (turn, instance)
where (wanted.turn = 0 or (select ok from passed)[wanted.turn])
  and not exists (select from /*schema*/turn_queue q where q.instance = wanted.instance)
  and not exists (select from /*schema*/instance i where i.instance = wanted.instance and i.finished_at is not null)
order by wanted.instance collate "C"
on conflict (instance) do nothing
