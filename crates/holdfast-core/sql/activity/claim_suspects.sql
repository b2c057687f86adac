-- Claims due activity tasks without a session that are suspects: their owner died, or they are past their second delivery. Few at a time.
-- In one statement: the delivery is counted (of a poisoned one it is none), a new fence minted, the owner set, and the next due time stamped after
-- the row lock as now + timeout + backoff(deliveries).
-- Rows: at most $4, in due order (equal due times in any order: a second sort key would read the whole backlog).
-- Locks: activity rows, skipping locked ones. Index: activity_queue_suspect_idx bounded by statement_timestamp(),
-- node_pkey; the locked rows are found again by their place, so one that moved between look and lock is left to a later look.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 names text[]
-- $4 limit bigint
-- $5 unowned_only boolean
-- $6 lock_timeout_ms bigint
-- $7 backoff_base_ms bigint
-- $8 backoff_max_ms bigint
-- $9 max_attempts int
-- $10 untagged boolean
-- $11 any_tag boolean
-- $12 tags text[]
-- $13 spares_last boolean (what has its last delivery before it is left)
with candidate as materialized (
  select q.ctid as tid
  from /*schema*/activity_queue q
  where q.due_at <= statement_timestamp()
    and (q.isolated or q.deliveries >= 2)
    and q.name = any ($3::text[])
    and q.session is null
    and not ($13::boolean and q.deliveries = $9::int - 1)
    and case when q.tag is null then $10::boolean else $11::boolean or q.tag = any ($12::text[]) end
    and (q.owner is null or not ($5::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  order by q.due_at
  limit $4::bigint
  for update of q skip locked
)
update /*schema*/activity_queue q
set deliveries = q.deliveries + (q.deliveries <= $9::int)::int,
    fence = nextval('/*schema*/fence_seq'),
    owner = $1::text,
    owner_epoch = $2::bigint,
    leased_at = clock_timestamp(),
    due_at = clock_timestamp() + make_interval(secs => ($6::bigint
      + case
          when q.deliveries < 1 then 0
          else least($8::bigint, $7::bigint * power(2, least(q.deliveries - 1, 40)))
        end) / 1000.0)
from candidate
where q.ctid = candidate.tid
returning q.instance,
          q.execution,
          q.event,
          q.fence,
          q.deliveries,
          q.deliveries > $9::int as poisoned,
          q.attempt,
          q.name,
          q.input,
          q.retry,
          q.heartbeat,
          q.timeout_ms,
          q.tag,
          q.session,
          q.orchestration_name,
          q.orchestration_version,
          q.scheduled_at,
          q.leased_at as claimed_at
