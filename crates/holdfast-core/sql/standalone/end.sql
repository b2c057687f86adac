-- Ends standalone activities whose lease stands: the row goes. Failed ones are kept; of the others those that somebody
-- wants to read.
-- Rows: the tasks given. Locks: activity rows in the order given, which is that of the ids. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 ids text[]
-- $2 fences bigint[]
-- $3 owners text[]
-- $4 owner epochs bigint[]
-- $5 statuses text[]
-- $6 results text[]
-- $7 heartbeats text[] (null: what is stored)
with ended as (
  delete from /*schema*/activity_queue a
  using unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[])
    with ordinality as task (id, fence, owner, owner_epoch, status, result, told, ix)
  where a.instance = task.id
    and a.execution = 0
    and a.event = 0
    and a.fence = task.fence
    and (a.owner is null or (a.owner = task.owner and a.owner_epoch = task.owner_epoch))
  returning task.ix, task.status, task.result, task.status in ('Failed', 'Poisoned') as stays, task.told, a.instance, a.name, a.input,
            a.heartbeat, a.fence, a.attempt, a.deliveries, a.retry, a.timeout_ms, a.retention_ms, a.tag, a.scheduled_at
),
kept as (
  insert into /*schema*/ended_activity (
    id, name, input, status, result, heartbeat, fence, attempt, deliveries, retry, timeout_ms, retention_ms, tag, scheduled_at, keep_until
  )
  select ended.instance, ended.name, ended.input, ended.status, ended.result, coalesce(ended.told, ended.heartbeat), ended.fence, ended.attempt, ended.deliveries,
         ended.retry, ended.timeout_ms, ended.retention_ms, ended.tag, ended.scheduled_at,
         case
           when ended.stays or ended.retention_ms < 0 then 'infinity'
           else clock_timestamp() + make_interval(secs => ended.retention_ms / 1000.0)
         end
  from ended
  where ended.stays or ended.retention_ms <> 0
)
select ended.ix from ended
