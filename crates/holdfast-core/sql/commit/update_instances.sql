-- What surviving turns change on their instances: running with its version from the first turn on, custom status, end,
-- or that it is parked.
-- Rows: the turns given. Locks: instance rows under their turn rows' locks. Index: turn_queue_pkey, instance_pkey.
-- $1 instances text[]
-- $2 first turns of an execution boolean[]
-- $3 versions text[]
-- $4 sets the custom status boolean[]
-- $5 custom statuses text[]
-- $6 final statuses text[] (null: not ended)
-- $7 outputs text[]
-- $8 errors text[]
-- $9 history lengths int[]
-- $10 error codes text[]
-- $11 parked boolean[]
-- $12 fences bigint[]
-- $13 replay versions bigint[] (of who writes)
update /*schema*/instance i
set status = case when change.parked then i.status else coalesce(change.status, 'Running') end,
    version = case when change.first then change.version else i.version end,
    replay_version = case when change.first then change.replay_version else i.replay_version end,
    started_at = case when change.first then coalesce(i.started_at, clock_timestamp()) else i.started_at end,
    custom_status = case when change.sets_status then change.custom_status else i.custom_status end,
    custom_status_version = i.custom_status_version + change.sets_status::int,
    output = change.output,
    error = change.error,
    error_code = change.error_code,
    parked_at = case when change.parked then clock_timestamp() end,
    finished_at = case when change.status is not null then clock_timestamp() end,
    last_fence = case when change.status is not null then change.fence else i.last_fence end,
    history_len = case when change.status is not null then change.history_len else i.history_len end,
    updated_at = clock_timestamp()
from unnest(
    $1::text[], $2::boolean[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::text[],
    $8::text[], $9::int[], $10::text[], $11::boolean[], $12::bigint[], $13::bigint[])
  as change (instance, first, version, sets_status, custom_status, status, output, error, history_len, error_code, parked, fence,
             replay_version)
where i.instance = change.instance
