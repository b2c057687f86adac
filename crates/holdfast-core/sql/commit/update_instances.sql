-- What surviving turns change on their instances: running with its version from the first turn on, custom status, end,
-- or that it is parked.
-- Rows: the turns given. Locks: instance rows under their turn rows' locks. Index: turn_queue_pkey, instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 first turns of an execution boolean[]
-- $8 versions text[]
-- $9 sets the custom status boolean[]
-- $10 custom statuses text[]
-- $11 final statuses text[] (null: not ended)
-- $12 outputs text[]
-- $13 errors text[]
-- $14 history lengths int[]
-- $15 error codes text[]
-- $16 parked boolean[]
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
update /*schema*/instance i
set status = case when change.parked then i.status else coalesce(change.status, 'Running') end,
    version = case when change.first then change.version else i.version end,
    started_at = case when change.first then coalesce(i.started_at, clock_timestamp()) else i.started_at end,
    custom_status = case when change.sets_status then change.custom_status else i.custom_status end,
    custom_status_version = i.custom_status_version + change.sets_status::int,
    output = change.output,
    error = change.error,
    error_code = change.error_code,
    parked_at = case when change.parked then clock_timestamp() end,
    finished_at = case when change.status is not null then clock_timestamp() end,
    last_fence = case when change.status is not null then ($2::bigint[])[change.turn] else i.last_fence end,
    history_len = case when change.status is not null then change.history_len else i.history_len end,
    updated_at = clock_timestamp()
from unnest(
    $5::int[], $6::text[], $7::boolean[], $8::text[], $9::boolean[], $10::text[], $11::text[], $12::text[],
    $13::text[], $14::int[], $15::text[], $16::boolean[])
  as change (turn, instance, first, version, sets_status, custom_status, status, output, error, history_len, error_code, parked)
where (select ok from passed)[change.turn]
  and i.instance = change.instance
