-- One execution of an instance, the current one or a closed one; no row when there is none.
-- Rows: one. Locks: none. Index: instance_pkey, execution_pkey, history_turn_pkey.
-- $1 instance text
-- $2 execution bigint
with found as (
  select i.status, i.output, coalesce(i.started_at, i.updated_at) as started_at, i.finished_at
  from /*schema*/instance i
  where i.instance = $1::text and i.execution = $2::bigint
  union all
  select e.status, e.output, coalesce(e.started_at, e.finished_at), e.finished_at
  from /*schema*/execution e
  where e.instance = $1::text and e.execution = $2::bigint
)
select found.status,
       found.output,
       floor(extract(epoch from found.started_at) * 1000)::bigint as started_at_ms,
       floor(extract(epoch from found.finished_at) * 1000)::bigint as finished_at_ms,
       coalesce((
         select packed.event_id + packed.events - 1
         from /*schema*/history_turn packed
         where packed.instance = $1::text and packed.execution = $2::bigint
         order by packed.event_id desc
         limit 1
       ), 0) as events
from found
