-- Claims due turns that are suspects: their owner died, or they are past their second delivery. Few at a time.
-- In one statement: the delivery is counted (of a poisoned one it is none), a new fence minted, the owner set, and the next due time stamped after
-- the row lock as now + timeout + backoff(deliveries).
-- A row that somebody still had, or that a lease was cut off of, may be behind its history: its versions come from its instance too.
-- Rows: at most $5, in due order (equal due times in any order: a second sort key would read the whole backlog).
-- Locks: turn rows, skipping locked ones. Index: turn_queue_suspect_idx bounded by statement_timestamp() (a volatile
-- function there would read every waiting row), turn_queue_pkey, node_pkey, instance_pkey.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 names text[] (while no version is fixed)
-- $4 handlers text[] (name@version)
-- $5 limit bigint
-- $6 unowned_only boolean
-- $7 lock_timeout_ms bigint
-- $8 backoff_base_ms bigint
-- $9 backoff_max_ms bigint
-- $10 max_attempts int
-- $11 replay_min bigint (histories older than this are left to others)
-- $12 replay_max bigint
with candidate as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.due_at <= statement_timestamp()
    and (q.isolated or q.deliveries >= 2)
    and case
          when q.version is null then q.name = any ($3::text[])
          else q.name || '@' || q.version = any ($4::text[])
        end
    and (q.replay_version is null or q.replay_version between $11::bigint and $12::bigint)
    and (q.owner is null or not ($6::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  order by q.due_at
  limit $5::bigint
  for update of q skip locked
),
claimed as (
  update /*schema*/turn_queue q
  set deliveries = q.deliveries + (q.deliveries <= $10::int)::int,
      fence = nextval('/*schema*/fence_seq'),
      owner = $1::text,
      owner_epoch = $2::bigint,
      leased_at = clock_timestamp(),
      cut_off = q.cut_off or q.owner is not null,
      due_at = clock_timestamp() + make_interval(secs => ($7::bigint
        + case
            when q.deliveries < 1 then 0
            else least($9::bigint, $8::bigint * power(2, least(q.deliveries - 1, 40)))
          end) / 1000.0)
  from candidate
  where q.instance = candidate.instance
  returning q.instance, q.fence, q.deliveries, q.name, q.version, q.execution, q.history_len, q.last_fence, q.parked, q.cut_off,
            q.replay_version, q.leased_at
)
select claimed.instance,
       claimed.fence,
       claimed.deliveries,
       claimed.deliveries > $10::int as poisoned,
       claimed.name,
       case when claimed.cut_off then coalesce(claimed.version, started.fixed_version) else claimed.version end as version,
       claimed.execution,
       claimed.history_len,
       claimed.last_fence,
       claimed.parked,
       claimed.cut_off,
       case
         when claimed.cut_off then greatest(claimed.replay_version, started.first_replay_version)
         else claimed.replay_version
       end as replay_version,
       floor(extract(epoch from claimed.leased_at) * 1000)::bigint as now_ms,
       false as unread,
       started.input,
       started.carried,
       started.custom_status,
       started.parent_instance,
       started.parent_execution,
       started.parent_event
from claimed
left join lateral (
  select case when claimed.history_len = 0 then i.input end as input,
         case when claimed.history_len = 0 then i.carried end as carried,
         case when claimed.history_len = 0 then i.custom_status end as custom_status,
         i.parent_instance,
         i.parent_execution,
         i.parent_event,
         i.version as fixed_version,
         i.replay_version as first_replay_version
  from /*schema*/instance i
  where i.instance = claimed.instance
) started on true
