-- Turns that do not hold their lease because an earlier commit settled them and its reply was lost. Of one that keeps its
-- lease the history tells.
-- Rows: the turns given. Locks: none (turn rows are locked). Index: turn_queue_pkey, instance_pkey, history_turn_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 executions bigint[]
-- $4 first event ids int[] (null: it does not keep its lease)
select turn.ix,
       (select true from /*schema*/turn_queue q where q.instance = turn.instance and q.fence = turn.fence) is true as kept
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[]) with ordinality as turn (instance, fence, execution, first_event, ix)
where case
        when (select true from /*schema*/turn_queue q where q.instance = turn.instance and q.fence = turn.fence) then (
          select true
          from /*schema*/history_turn packed
          where packed.instance = turn.instance and packed.execution = turn.execution and packed.event_id = turn.first_event
        )
        when (select true from /*schema*/turn_queue q where q.instance = turn.instance and q.last_fence = turn.fence) then true
        else (select true from /*schema*/instance i where i.instance = turn.instance and i.last_fence = turn.fence)
      end
