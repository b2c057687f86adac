-- An instance with its turn row, or either of them alone: one row, empty where there is nothing. A node counts as live
-- until it is stale. A turn row that somebody holds, or that a lease was cut off of, may be behind its history.
-- Rows: one, at most 1001 messages and the handlers of one name. Locks: none.
-- Index: instance_pkey, turn_queue_pkey, history_turn_pkey, inbox_pkey, node_handler_name_idx, node_pkey.
-- $1 instance text
select i.name,
       i.version,
       i.execution,
       i.status,
       i.error,
       i.error_code,
       floor(extract(epoch from i.parked_at) * 1000)::bigint as parked_at_ms,
       q.instance is not null as queued,
       q.name is not null as started,
       coalesce(q.version, i.version) as turn_version,
       greatest(q.replay_version, i.replay_version) as replay_version,
       case
         when q.owner is not null or q.cut_off then coalesce(
           (
             select packed.event_id + packed.events - 1
             from /*schema*/history_turn packed
             where packed.instance = q.instance and packed.execution = q.execution
             order by packed.event_id desc
             limit 1
           ),
           0
         )
         else q.history_len
       end as history_len,
       q.deliveries,
       q.owner,
       q.owner_epoch,
       case when q.due_at < 'infinity' then floor(extract(epoch from q.due_at) * 1000)::bigint end as due_at_ms,
       floor(extract(epoch from statement_timestamp()) * 1000)::bigint as now_ms,
       (
         select count(*)
         from (
           select
           from /*schema*/inbox m
           where m.instance = wanted.instance and (m.due_at <= statement_timestamp() or m.kind <> 'TimerFired')
           limit 1001
         ) due
       ) as messages,
       (
         select count(*) from /*schema*/node n where n.heartbeat_at > statement_timestamp() - n.stale_after
       ) as nodes,
       exists (
         select from /*schema*/node n where n.id = q.owner and n.epoch = q.owner_epoch and n.heartbeat_at > statement_timestamp() - n.stale_after
       ) as owner_lives,
       exists (
         select
         from /*schema*/node_handler h
         join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
         where h.kind = 'orchestration' and h.name = i.name and h.version = coalesce(q.version, i.version, h.version)
           and n.heartbeat_at > statement_timestamp() - n.stale_after
       ) as served,
       greatest(q.replay_version, i.replay_version) is null or exists (
         select
         from /*schema*/node_handler h
         join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
         join /*schema*/node_handler r on r.node_id = h.node_id and r.node_epoch = h.node_epoch and r.kind = 'replay'
         where h.kind = 'orchestration' and h.name = i.name and h.version = coalesce(q.version, i.version, h.version)
           and n.heartbeat_at > statement_timestamp() - n.stale_after
           and greatest(q.replay_version, i.replay_version) between r.name::bigint and r.version::bigint
       ) as replayed
from (values ($1::text)) as wanted (instance)
left join /*schema*/instance i on i.instance = wanted.instance
left join /*schema*/turn_queue q on q.instance = wanted.instance
