-- Claims due activity tasks that belong to a session: of sessions that this node owns, and of free ones, which become its.
-- A session is free without a row, without an owner, or when its lease is over.
-- In one statement: the delivery is counted, a new fence minted, the owner set, and the next due time stamped after
-- the row lock as now + timeout + backoff(deliveries).
-- Rows: at most $4, in due order, of at most $14 sessions beside the owned ones. Locks: session rows, then activity rows,
-- skipping locked ones; a session without a row may wait for another claim that makes it at this moment.
-- Index: activity_queue_session_idx bounded by statement_timestamp(), session_pkey, activity_queue_pkey, node_pkey.
-- Inputs of 64 MiB together are enough for one claim, the longest that one payload has by default; the rest stays due. Their
-- lengths are read without their texts.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 names text[]
-- $4 limit bigint
-- $5 unowned_only boolean
-- $6 lock_timeout_ms bigint
-- $7 backoff_base_ms bigint
-- $8 backoff_max_ms bigint
-- $9 max_attempts int
-- $10 look_back_ms bigint (rows due for longer are left to a later look)
-- $11 untagged boolean
-- $12 any_tag boolean
-- $13 tags text[]
-- $14 new_sessions bigint
-- $15 session_timeout_ms bigint
-- $16 suspects boolean
-- $17 spares_last boolean (of suspects, what has its last delivery before it is left)
with waiting as materialized (
  select q.instance, q.execution, q.event, q.due_at, q.session, (s.owner = $1::text) is true as owned
  from /*schema*/activity_queue q
  left join /*schema*/session s on s.session = q.session
  where q.session is not null
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $10::bigint / 1000.0)
    and (q.isolated or q.deliveries >= 2) = $16::boolean
    and not ($16::boolean and $17::boolean and q.deliveries = $9::int - 1)
    and q.name = any ($3::text[])
    and case when q.tag is null then $11::boolean else $12::boolean or q.tag = any ($13::text[]) end
    and (q.owner is null or not ($5::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
    and case
          when s.session is null or s.leased_until <= statement_timestamp() then (s.owner = $1::text) is true or $14::bigint > 0
          else (s.owner = $1::text) is true
        end
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  order by q.due_at
  limit $4::bigint
),
fresh as materialized (
  select waiting.session
  from waiting
  where not waiting.owned
  group by waiting.session
  order by min(waiting.due_at)
  limit $14::bigint
),
locked as materialized (
  select s.session
  from /*schema*/session s
  where s.session = any (array(
      select waiting.session from waiting where waiting.owned
      union
      select fresh.session from fresh
    ))
    and (s.owner = $1::text or s.leased_until <= statement_timestamp())
  order by s.session
  for no key update of s skip locked
),
taken as (
  update /*schema*/session s
  set owner = $1::text,
      leased_until = clock_timestamp() + make_interval(secs => $15::bigint / 1000.0),
      used_at = clock_timestamp()
  from locked
  where s.session = locked.session
  returning s.session
),
made as (
  insert into /*schema*/session (session, owner, leased_until, used_at)
  select fresh.session, $1::text, clock_timestamp() + make_interval(secs => $15::bigint / 1000.0), clock_timestamp()
  from fresh
  where (select true from /*schema*/session s where s.session = fresh.session) is null
  order by fresh.session
  on conflict (session) do nothing
  returning session
),
candidate as materialized (
  select q.instance, q.execution, q.event, waiting.due_at, octet_length(q.input) as bytes
  from waiting
  join /*schema*/activity_queue q
    on q.instance = waiting.instance and q.execution = waiting.execution and q.event = waiting.event
  where waiting.session = any (array(select taken.session from taken union all select made.session from made))
    and q.due_at <= statement_timestamp()
    and (q.owner is null or not ($5::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
  for update of q skip locked
),
weighed as materialized (
  select c.*, coalesce(sum(c.bytes) over (order by c.due_at rows between unbounded preceding and 1 preceding), 0) as before
  from candidate c
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
from weighed
where q.instance = weighed.instance and q.execution = weighed.execution and q.event = weighed.event
  and weighed.before < 67108864
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
          q.leased_at as claimed_at,
          (select floor(extract(epoch from statement_timestamp() - max(w.due_at)) * 1000)::bigint from weighed w where w.before < 67108864) as waited_ms,
          (select max(w.before) >= 67108864 from weighed w) as cut
