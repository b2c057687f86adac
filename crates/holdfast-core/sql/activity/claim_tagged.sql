-- Claims due activity tasks with a tag and without a session that are not suspects: of the tags named, or of any.
-- In one statement: the delivery is counted, a new fence minted, the owner set, and the next due time stamped after
-- the row lock as now + timeout + backoff(deliveries).
-- Rows: at most $4, in due order; at most $4 are locked for each tag named, and those not taken are free at the end of
-- the statement. Locks: activity rows, skipping locked ones. Index: activity_queue_tag_idx for each tag, or
-- activity_queue_any_tag_idx, bounded by statement_timestamp(), node_pkey; the locked rows are found again by their place, so
-- one that moved between look and lock is left to a later look.
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
-- $11 any_tag boolean
-- $12 tags text[]
with of_named as materialized (
  select due.tid, due.due_at, due.bytes
  from unnest($12::text[]) as wanted (tag)
  cross join lateral (
    select q.ctid as tid, q.due_at, octet_length(q.input) as bytes
    from /*schema*/activity_queue q
    where not $11::boolean
      and q.tag = wanted.tag and q.session is null
      and q.due_at <= statement_timestamp()
      and q.due_at >= statement_timestamp() - make_interval(secs => $10::bigint / 1000.0)
      and not (q.isolated or q.deliveries >= 2)
      and q.name = any ($3::text[])
      and (q.owner is null or not ($5::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
      and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
    order by q.due_at
    limit $4::bigint
    for update of q skip locked
  ) due
),
of_any as materialized (
  select q.ctid as tid, q.due_at, octet_length(q.input) as bytes
  from /*schema*/activity_queue q
  where $11::boolean
    and (q.tag is not null) is true and q.session is null
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $10::bigint / 1000.0)
    and not (q.isolated or q.deliveries >= 2)
    and q.name = any ($3::text[])
    and (q.owner is null or not ($5::boolean or (q.owner = $1::text and q.owner_epoch = $2::bigint)))
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  order by q.due_at
  limit $4::bigint
  for update of q skip locked
),
candidate as materialized (
  select found.tid, found.due_at, found.bytes
  from (select * from of_named union all select * from of_any) found
  order by found.due_at
  limit $4::bigint
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
where q.ctid = weighed.tid
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
