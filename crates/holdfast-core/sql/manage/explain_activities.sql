-- The activity tasks of an instance, the oldest first; a standalone one is its own instance.
-- Rows: at most $2. Locks: none. Index: activity_queue_pkey, node_handler_name_idx, node_pkey.
-- $1 instance text
-- $2 limit bigint
select a.execution,
       a.event,
       a.name,
       a.attempt,
       a.deliveries,
       a.tag,
       a.session,
       a.owner,
       exists (
         select
         from /*schema*/node n
         where n.id = a.owner and n.epoch = a.owner_epoch and n.heartbeat_at > statement_timestamp() - n.stale_after
       ) as owner_lives,
       case when a.isolated then a.lost_by end as lost_by,
       a.heartbeat,
       floor(extract(epoch from a.heartbeat_at) * 1000)::bigint as heartbeat_at_ms,
       case when a.due_at < 'infinity' then floor(extract(epoch from a.due_at) * 1000)::bigint end as due_at_ms,
       exists (
         select
         from /*schema*/node_handler h
         join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
         where h.kind = 'activity' and h.name = a.name and n.heartbeat_at > statement_timestamp() - n.stale_after
       ) as known,
       exists (
         select
         from /*schema*/node_handler h
         join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
         where h.kind = 'activity' and h.name = a.name
           and n.heartbeat_at > statement_timestamp() - n.stale_after
           and exists (
             select
             from /*schema*/node_handler t
             where t.node_id = h.node_id and t.node_epoch = h.node_epoch
               and case
                     when a.tag is null then t.kind = 'untagged'
                     else t.kind = 'any_tag' or (t.kind = 'tag' and t.name = a.tag)
                   end
           )
       ) as served
from /*schema*/activity_queue a
where a.instance = $1::text
order by a.execution, a.event
limit $2::bigint
