-- Queues standalone activities whose id is not taken, neither in the queue nor among those that have ended.
-- They count as scheduled from when they may start first.
-- Rows: the tasks given, in key order, so that two batches with the same ids wait for each other and never deadlock.
-- Locks: none but those of an insert. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 ids text[]
-- $2 names text[]
-- $3 inputs text[]
-- $4 retry policies text[]
-- $5 time limits bigint[] (ms)
-- $6 tags text[]
-- $7 delays bigint[] (ms)
-- $8 retentions bigint[] (ms)
insert into /*schema*/activity_queue (
  instance, execution, event, name, input, retry, timeout_ms, tag, retention_ms, due_at, scheduled_at
)
select task.id, 0, 0, task.name, task.input, task.retry, task.timeout_ms, task.tag, task.retention_ms,
       clock_timestamp() + make_interval(secs => task.delay_ms / 1000.0),
       clock_timestamp() + make_interval(secs => task.delay_ms / 1000.0)
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[])
    with ordinality as task (id, name, input, retry, timeout_ms, tag, delay_ms, retention_ms, ix)
where (select true from /*schema*/ended_activity e where e.id = task.id) is null
order by task.id collate "C", task.ix
on conflict (instance, execution, event) do nothing
returning instance
