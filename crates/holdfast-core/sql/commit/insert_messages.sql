-- Messages of clients and of surviving turns to instances that have not ended (a message to an unknown id is kept until
-- its start), and their wake: a row that nobody holds is due now; one that is held derives it when it is settled; one
-- that is parked or does not start yet is woken by a cancel request only.
-- A turn can cancel its own children only. A client's message has a key; one whose key is there was sent before, and is
-- told as delivered: a row with the key. A row without one: the instance takes messages.
-- Rows: the messages given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, instance_pkey,
-- message_key_pkey.
-- $1 senders text[] (null: a client)
-- $2 instances text[]
-- $3 kinds text[]
-- $4 executions bigint[]
-- $5 sources int[]
-- $6 names text[]
-- $7 data text[]
-- $8 keys text[] (null: a turn's)
with keyed as (
  insert into /*schema*/message_key (instance, dedup_key)
  select distinct message.instance, message.dedup_key
  from unnest($2::text[], $8::text[]) as message (instance, dedup_key)
  where message.dedup_key is not null
    and exists (
      select
      from /*schema*/turn_queue q
      where q.instance = message.instance
        and (q.name is not null
          or (select true from /*schema*/instance i where i.instance = q.instance and i.finished_at is not null) is null)
    )
  order by message.instance, message.dedup_key
  on conflict (instance, dedup_key) do nothing
  returning instance, dedup_key
),
told as (
  insert into /*schema*/inbox (instance, due_at, kind, execution, source, name, data)
  select message.instance, clock_timestamp(), message.kind, message.execution, message.source, message.name, message.data
  from (
    select message.*, row_number() over (partition by message.instance, message.dedup_key order by message.ix) as copy
    from unnest(
        $1::text[], $2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::text[], $8::text[])
      with ordinality
      as message (sender, instance, kind, execution, source, name, data, dedup_key, ix)
  ) message
  where (message.dedup_key is null
      or message.copy = 1
        and (message.instance, message.dedup_key) in (select keyed.instance, keyed.dedup_key from keyed))
    and exists (
      select
      from /*schema*/turn_queue q
      where q.instance = message.instance
        and (q.name is not null
          or (select true from /*schema*/instance i where i.instance = q.instance and i.finished_at is not null) is null)
    )
    and (message.sender is null or message.kind <> 'CancelRequested'
      or (
        select true
        from /*schema*/instance i
        where i.instance = message.instance and i.parent_instance = message.sender
      ))
  order by message.ix
  on conflict (instance, execution, source) where source is not null do nothing
  returning instance, kind
),
woken as (
  update /*schema*/turn_queue q
  set due_at = clock_timestamp()
  where q.instance = any (array(select told.instance from told))
    and q.owner is null
    and q.name is not null
    and (not (q.parked or coalesce(q.starts_at > clock_timestamp(), false))
      or q.instance = any (array(select told.instance from told where told.kind = 'CancelRequested')))
    and q.due_at > clock_timestamp()
)
select told.instance, null as dedup_key from told
union
select message.instance, message.dedup_key
from unnest($2::text[], $8::text[]) as message (instance, dedup_key)
where message.dedup_key is not null
  and (
    select true
    from /*schema*/message_key k
    where k.instance = message.instance and k.dedup_key = message.dedup_key
  )
