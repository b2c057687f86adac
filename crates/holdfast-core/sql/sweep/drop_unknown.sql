-- Drops messages that came before a time to instances that were never started, and their turn rows where no younger message
-- is left. A statement later than the lock, so that no message is missed; a start that meets it is run again.
-- Rows: the instances given. Locks: inbox rows, under the turn rows already locked. Index: turn_queue_pkey, inbox_pkey.
-- $1 instances text[]
-- $2 before_ms bigint
with unknown as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.instance = any ($1::text[])
    and q.name is null
    and q.created_at < timestamptz 'epoch' + $2::bigint * interval '1 millisecond'
),
messages as (
  delete from /*schema*/inbox m
  using unknown
  where m.instance = unknown.instance and m.due_at < timestamptz 'epoch' + $2::bigint * interval '1 millisecond'
  returning m.instance
),
gone as (
  delete from /*schema*/turn_queue q
  using unknown
  where q.instance = unknown.instance
    and not exists (
      select
      from /*schema*/inbox m
      where m.instance = q.instance and m.due_at >= timestamptz 'epoch' + $2::bigint * interval '1 millisecond'
    )
)
select count(*) as messages, count(distinct messages.instance) as instances, min(messages.instance) as first from messages
