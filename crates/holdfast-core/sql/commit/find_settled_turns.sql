-- Turns that do not hold their lease because an earlier commit settled them and its reply was lost.
-- Rows: the turns given. Locks: none (turn rows are locked). Index: turn_queue_pkey, instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
select turn.ix
from unnest($1::text[], $2::bigint[]) with ordinality as turn (instance, fence, ix)
where case
        when (select true from /*schema*/turn_queue q where q.instance = turn.instance and q.fence = turn.fence) then false
        when (select true from /*schema*/turn_queue q where q.instance = turn.instance and q.last_fence = turn.fence) then true
        else (select true from /*schema*/instance i where i.instance = turn.instance and i.last_fence = turn.fence)
      end
