-- Settles the turns that do not end their instance: the fence ends, and the next due time comes from the inbox as it is
-- after everything else of this commit (what is no timer is due at once, whatever the clock was when it came). It is never in the past: a claim looks back only as far as its last one. A
-- parked turn is due only when somebody has asked to cancel. Deliveries start anew also when turns that kept the lease appended
-- to the history; what ran without a row has its row from here on, unless a parked turn left that to the next one.
-- Rows: the turns given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, inbox_pkey.
-- $1 instances text[]
-- $2 fences bigint[]
-- $3 owners text[]
-- $4 owner epochs bigint[]
-- $5 progress boolean[] (consumed a message or appended an event: deliveries start anew)
-- $6 executions bigint[]
-- $7 history lengths int[]
-- $8 versions text[]
-- $9 due now boolean[] (continued as new)
-- $10 parked boolean[]
-- $11 replay versions bigint[] (of who writes)
update /*schema*/turn_queue q
set last_fence = q.fence,
    fence = nextval('/*schema*/fence_seq'),
    owner = null,
    owner_epoch = null,
    leased_at = null,
    isolated = false,
    parked = turn.parked,
    cut_off = q.cut_off and turn.parked,
    starts_at = null,
    deliveries = case when turn.progress or turn.history_len > q.history_len then 0 else q.deliveries end,
    execution = turn.execution,
    history_len = turn.history_len,
    version = turn.version,
    replay_version = greatest(q.replay_version, turn.replay_version),
    due_at = case
      when turn.due_now then clock_timestamp()
      when turn.parked then coalesce(
        (select clock_timestamp() from /*schema*/inbox m where m.instance = q.instance and m.kind = 'CancelRequested' limit 1),
        'infinity'
      )
      else greatest(
        clock_timestamp(),
        coalesce(
          (
            select min(case when m.kind = 'TimerFired' then m.due_at else '-infinity' end)
            from /*schema*/inbox m
            where m.instance = q.instance
          ),
          'infinity'
        )
      )
    end
from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::boolean[], $6::bigint[], $7::int[], $8::text[], $9::boolean[],
    $10::boolean[], $11::bigint[])
  with ordinality
  as turn (instance, fence, owner, owner_epoch, progress, execution, history_len, version, due_now, parked, replay_version, ix)
where q.instance = turn.instance
  and q.fence = turn.fence
  and (q.owner is null or (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch))
returning turn.ix,
          q.fence as next_fence,
          q.due_at <= clock_timestamp() as more_work,
          floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms
