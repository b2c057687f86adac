-- Queues the activities again that the end of a poisoned execution took back.
-- Rows: the tasks given. Locks: none but the turn row just made. Index: turn_queue_pkey, instance_pkey.
-- $1 instance text
-- $2 execution bigint
-- $3 scheduling events int[]
-- $4 fence bigint
-- $5 names text[]
-- $6 inputs text[]
-- $7 retry policies text[]
-- $8 time limits bigint[] (ms)
-- $9 tags text[]
-- $10 sessions text[]
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, tag, session,
  orchestration_name, orchestration_version, due_at, scheduled_at
)
select $1::text, $2::bigint, task.event, task.name, task.input, task.retry, task.timeout_ms, task.tag, task.session,
       i.name, i.version, clock_timestamp(), clock_timestamp()
from unnest($3::int[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[])
  as task (event, name, input, retry, timeout_ms, tag, session)
join /*schema*/instance i on i.instance = $1::text
where (select true from /*schema*/turn_queue q where q.instance = $1::text and q.fence = $4::bigint)
  and not exists (
    select
    from /*schema*/inbox m
    where m.instance = $1::text and m.execution = $2::bigint and m.source = task.event
  )
on conflict (instance, execution, event) do nothing
