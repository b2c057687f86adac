-- Starts instances that do not exist: clients' starts, and children and detached starts of surviving turns. The turn
-- row gets its name and is due now, or when the start says. It is missing where the instance had ended when the commit began
-- and was deleted since: it is made then.
-- Rows: the starts given. Locks: instance rows, ascending, under their turn rows' locks. Index: turn_queue_pkey,
-- instance_pkey.
-- $1 instances text[]
-- $2 names text[]
-- $3 versions text[]
-- $4 inputs text[]
-- $5 parent instances text[]
-- $6 parent executions bigint[]
-- $7 parent events int[]
-- $8 tags text[]
-- $9 delays bigint[] (ms; null: none)
-- $10 start times bigint[] (ms since 1970; null: none)
with created as (
  insert into /*schema*/instance (
    instance, name, version, input, parent_instance, parent_execution, parent_event, tag, starts_at
  )
  select start.instance, start.name, start.version, start.input, start.parent_instance, start.parent_execution, start.parent_event,
         start.tag,
         case
           when start.start_at_ms is not null then timestamptz 'epoch' + start.start_at_ms * interval '1 millisecond'
           when start.delay_ms is not null then clock_timestamp() + start.delay_ms * interval '1 millisecond'
         end
  from unnest(
      $1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::int[], $8::text[],
      $9::bigint[], $10::bigint[]) with ordinality
    as start (instance, name, version, input, parent_instance, parent_execution, parent_event, tag, delay_ms,
              start_at_ms, ix)
  where not exists (select from /*schema*/turn_queue q where q.instance = start.instance and q.name is not null)
  order by start.instance collate "C", start.ix
  on conflict (instance) do nothing
  returning instance, name, version, starts_at
),
made_due as (
  insert into /*schema*/turn_queue as q (instance, name, version, due_at, starts_at)
  select created.instance, created.name, created.version, greatest(clock_timestamp(), created.starts_at), created.starts_at
  from created
  on conflict (instance) do update
  set name = excluded.name,
      version = excluded.version,
      due_at = excluded.due_at,
      starts_at = excluded.starts_at
)
select created.instance from created
