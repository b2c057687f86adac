-- The given standalone activities, as a client sees them.
-- Rows: the ids given. Locks: none. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 ids text[]
select a.instance as id,
       a.name,
       case when a.owner is not null and a.due_at > statement_timestamp() then 'Running' else 'Pending' end as status,
       a.attempt,
       a.deliveries,
       a.tag,
       a.owner as node,
       a.heartbeat,
       floor(extract(epoch from a.heartbeat_at) * 1000)::bigint as heartbeat_at_ms,
       floor(extract(epoch from a.scheduled_at) * 1000)::bigint as scheduled_at_ms,
       floor(extract(epoch from a.due_at) * 1000)::bigint as due_at_ms,
       null::bigint as ended_at_ms,
       null::text as result
from /*schema*/activity_queue a
where a.instance = any ($1::text[]) and a.execution = 0 and a.event = 0
union all
select e.id,
       e.name,
       e.status,
       e.attempt,
       e.deliveries,
       e.tag,
       null::text as node,
       e.heartbeat,
       null::bigint as heartbeat_at_ms,
       floor(extract(epoch from e.scheduled_at) * 1000)::bigint as scheduled_at_ms,
       null::bigint as due_at_ms,
       floor(extract(epoch from e.ended_at) * 1000)::bigint as ended_at_ms,
       e.result
from /*schema*/ended_activity e
where e.id = any ($1::text[])
