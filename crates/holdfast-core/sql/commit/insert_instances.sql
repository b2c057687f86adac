-- Starts instances that do not exist: clients' starts, and children and detached starts of surviving turns. The turn row is
-- made with its name, or gets it, and is due now, or when the start says. One that is made here is leased to a node that begins
-- its first turn at once, as a claim would, when its row is there: the delivery counts, and due is now + timeout.
-- Rows: the starts given. Locks: instance rows, then their turn rows, ascending; every row that was there is locked before.
-- Index: turn_queue_pkey, instance_pkey, node_pkey.
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
-- $11 owner text (null: nobody)
-- $12 owner epoch bigint
-- $13 lease bigint (ms)
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
made as (
  insert into /*schema*/turn_queue as q (
    instance, name, version, due_at, starts_at, fence, owner, owner_epoch, leased_at, deliveries
  )
  select created.instance, created.name, created.version,
         case
           when node.id is null then greatest(clock_timestamp(), created.starts_at)
           else clock_timestamp() + make_interval(secs => $13::bigint / 1000.0)
         end,
         created.starts_at,
         case when node.id is null then 0 else nextval('/*schema*/fence_seq') end,
         node.id,
         node.epoch,
         case when node.id is not null then clock_timestamp() end,
         (node.id is not null)::int
  from created
  left join /*schema*/node node on node.id = $11::text and node.epoch = $12::bigint
  on conflict (instance) do update
  set name = excluded.name,
      version = excluded.version,
      due_at = greatest(clock_timestamp(), excluded.starts_at),
      starts_at = excluded.starts_at
  returning q.instance, q.fence, q.owner is not null as begun
)
select made.instance, made.fence, made.begun, floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms
from made
