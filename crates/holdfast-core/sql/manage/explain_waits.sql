-- The timers of an instance that are not due yet, the next first, and its children that have not ended, the newest first.
-- Rows: at most $2 of each; the timers of its inbox are read. Locks: none. Index: inbox_pkey, instance_parent_idx.
-- $1 instance text
-- $2 limit bigint
(
  select floor(extract(epoch from m.due_at) * 1000)::bigint as fire_at_ms,
         null::text as child,
         null::text as name,
         null::text as status,
         null::text as parked
  from /*schema*/inbox m
  where m.instance = $1::text and m.kind = 'TimerFired' and m.due_at > statement_timestamp()
  order by m.due_at
  limit $2::bigint
)
union all
(
  select null::bigint,
         i.instance,
         i.name,
         i.status,
         case when i.parked_at is not null then coalesce(i.error_code, 'UNKNOWN') end
  from /*schema*/instance i
  where i.parent_instance = $1::text and i.finished_at is null
  order by i.created_at desc, i.instance desc
  limit $2::bigint
)
