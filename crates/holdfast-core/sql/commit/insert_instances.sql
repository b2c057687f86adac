-- Starts instances that do not exist: clients' starts, and children and detached starts of surviving turns. The turn
-- row gets its name and is due now, or when the start says.
-- Rows: the starts given. Locks: instance rows, ascending, under their turn rows' locks. Index: turn_queue_pkey,
-- instance_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[] (from 1; 0 is a client's)
-- $6 instances text[]
-- $7 names text[]
-- $8 versions text[]
-- $9 inputs text[]
-- $10 parent instances text[]
-- $11 parent executions bigint[]
-- $12 parent events int[]
-- $13 tags text[]
-- $14 delays bigint[] (ms; null: none)
-- $15 start times bigint[] (ms since 1970; null: none)
with passed as materialized (
  select array_agg((
    select true
    from /*schema*/turn_queue q
    where q.instance = turn.instance
      and q.fence = turn.fence
      and (q.owner is null or (q.owner = turn.owner and q.owner_epoch = turn.owner_epoch))
  ) order by turn.ix) as ok
  from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[]) with ordinality
    as turn (instance, fence, owner, owner_epoch, ix)
),
created as (
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
      $5::int[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::int[], $13::text[],
      $14::bigint[], $15::bigint[]) with ordinality
    as start (turn, instance, name, version, input, parent_instance, parent_execution, parent_event, tag, delay_ms,
              start_at_ms, ix)
  where (start.turn = 0 or (select ok from passed)[start.turn])
    and exists (select from /*schema*/turn_queue q where q.instance = start.instance and q.name is null)
  order by start.instance collate "C", start.ix
  on conflict (instance) do nothing
  returning instance, name, version, starts_at
),
made_due as (
  update /*schema*/turn_queue q
  set name = created.name,
      version = created.version,
      due_at = greatest(clock_timestamp(), created.starts_at),
      starts_at = created.starts_at
  from created
  where q.instance = created.instance
)
select created.instance from created
