-- What is due for a node in both queues, and when something will be. One row, read only, in one round trip: the idle
-- look of a claimer. Each part asks what the claim that would follow asks, from the same mark. The next due time is that
-- of the first row this node wants among the next 32; when it wants none of them, that of the last: one look for each
-- 32 rows of others.
-- Rows: 1. Locks: none. Index: turn_queue_due_at_idx, turn_queue_suspect_idx, activity_queue_due_at_idx,
-- activity_queue_suspect_idx, activity_queue_tag_idx, activity_queue_any_tag_idx,
-- activity_queue_session_idx, session_pkey.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 names text[] (while no version is fixed; empty: no turns)
-- $4 handlers text[] (name@version)
-- $5 activity names text[] (empty: no activities)
-- $6 untagged boolean
-- $7 any_tag boolean
-- $8 tags text[]
-- $9 turn_back_ms bigint (rows due for longer are left to a later look)
-- $10 activity_back_ms bigint
-- $11 tagged_back_ms bigint
-- $12 session_back_ms bigint
-- $13 new_sessions boolean
-- $14 replay_min bigint (histories older than this are left to others)
-- $15 replay_max bigint
select (
  select true
  from /*schema*/turn_queue q
  where $3::text[] <> '{}'
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $9::bigint / 1000.0)
    and not (q.isolated or q.deliveries >= 2)
    and case
          when q.version is null then q.name = any ($3::text[])
          else q.name || '@' || q.version = any ($4::text[])
        end
    and (q.replay_version is null or q.replay_version between $14::bigint and $15::bigint)
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
  order by q.due_at
  limit 1
) is true as turns,
(
  select true
  from /*schema*/turn_queue q
  where $3::text[] <> '{}'
    and q.due_at <= statement_timestamp()
    and (q.isolated or q.deliveries >= 2)
    and case
          when q.version is null then q.name = any ($3::text[])
          else q.name || '@' || q.version = any ($4::text[])
        end
    and (q.replay_version is null or q.replay_version between $14::bigint and $15::bigint)
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
  order by q.due_at
  limit 1
) is true as turn_suspects,
(
  select true
  from /*schema*/activity_queue q
  where $6::boolean and $5::text[] <> '{}'
    and q.tag is null and q.session is null
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $10::bigint / 1000.0)
    and not (q.isolated or q.deliveries >= 2)
    and q.name = any ($5::text[])
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
  order by q.due_at
  limit 1
) is true as activities,
(
  select true
  from /*schema*/activity_queue q
  where $5::text[] <> '{}'
    and q.due_at <= statement_timestamp()
    and (q.isolated or q.deliveries >= 2)
    and q.session is null
    and q.name = any ($5::text[])
    and case when q.tag is null then $6::boolean else $7::boolean or q.tag = any ($8::text[]) end
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
  order by q.due_at
  limit 1
) is true as activity_suspects,
(
  select true
  from unnest($8::text[]) as wanted (tag)
  cross join lateral (
    select
    from /*schema*/activity_queue q
    where not $7::boolean and $5::text[] <> '{}'
      and q.tag = wanted.tag and q.session is null
      and q.due_at <= statement_timestamp()
      and q.due_at >= statement_timestamp() - make_interval(secs => $11::bigint / 1000.0)
      and not (q.isolated or q.deliveries >= 2)
      and q.name = any ($5::text[])
      and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
    order by q.due_at
    limit 1
  ) due
  limit 1
) is true
or (
  select true
  from /*schema*/activity_queue q
  where $7::boolean and $5::text[] <> '{}'
    and (q.tag is not null) is true and q.session is null
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $11::bigint / 1000.0)
    and not (q.isolated or q.deliveries >= 2)
    and q.name = any ($5::text[])
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
  order by q.due_at
  limit 1
) is true as tagged,
(
  select true
  from /*schema*/activity_queue q
  left join /*schema*/session s on s.session = q.session
  where $5::text[] <> '{}'
    and q.session is not null
    and q.due_at <= statement_timestamp()
    and q.due_at >= statement_timestamp() - make_interval(secs => $12::bigint / 1000.0)
    and q.name = any ($5::text[])
    and case when q.tag is null then $6::boolean else $7::boolean or q.tag = any ($8::text[]) end
    and (q.owner is null or not (q.owner = $1::text and q.owner_epoch = $2::bigint))
    and case
          when s.session is null or s.leased_until <= statement_timestamp() then (s.owner = $1::text) is true or $13::boolean
          else (s.owner = $1::text) is true
        end
  order by q.due_at
  limit 1
) is true as in_session,
floor(extract(epoch from least(
  (
    select coalesce(min(near.due_at) filter (where near.wanted), max(near.due_at) filter (where near.place = 32))
    from (
      select q.due_at,
             row_number() over (order by q.due_at) as place,
             case
               when q.version is null then q.name = any ($3::text[])
               else q.name || '@' || q.version = any ($4::text[])
             end and (q.replay_version is null or q.replay_version between $14::bigint and $15::bigint) as wanted
      from /*schema*/turn_queue q
      where $3::text[] <> '{}' and q.due_at > statement_timestamp() and q.due_at < 'infinity'
      order by q.due_at
      limit 32
    ) near
  ),
  (
    select coalesce(min(near.due_at) filter (where near.wanted), max(near.due_at) filter (where near.place = 32))
    from (
      select q.due_at, row_number() over (order by q.due_at) as place, q.name = any ($5::text[]) as wanted
      from /*schema*/activity_queue q
      where $6::boolean and $5::text[] <> '{}' and q.tag is null and q.session is null and q.due_at > statement_timestamp() and q.due_at < 'infinity'
      order by q.due_at
      limit 32
    ) near
  ),
  (
    select coalesce(min(near.due_at) filter (where near.wanted), max(near.due_at) filter (where near.place = 32))
    from (
      select q.due_at,
             row_number() over (order by q.due_at) as place,
             q.name = any ($5::text[]) and ($7::boolean or q.tag = any ($8::text[])) as wanted
      from /*schema*/activity_queue q
      where ($7::boolean or $8::text[] <> '{}') and $5::text[] <> '{}'
        and (q.tag is not null) is true and q.session is null
        and q.due_at > statement_timestamp() and q.due_at < 'infinity'
      order by q.due_at
      limit 32
    ) near
  ),
  (
    select coalesce(min(near.due_at) filter (where near.wanted), max(near.due_at) filter (where near.place = 32))
    from (
      select q.due_at,
             row_number() over (order by q.due_at) as place,
             q.name = any ($5::text[])
               and case when q.tag is null then $6::boolean else $7::boolean or q.tag = any ($8::text[]) end as wanted
      from /*schema*/activity_queue q
      where $5::text[] <> '{}' and q.session is not null and q.due_at > statement_timestamp() and q.due_at < 'infinity'
      order by q.due_at
      limit 32
    ) near
  )
) - statement_timestamp()) * 1000)::bigint as due_in_ms
