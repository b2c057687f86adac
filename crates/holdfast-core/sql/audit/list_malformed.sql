-- Rows that no statement of the engine writes: no row in a sound database. The tables have no check constraints for it: see the
-- first migration.
-- Rows: every table, whole; at most $1 findings. Locks: none. Index: none, for tests and incidents.
-- $1 limit bigint
select found.what, found.instance, found.event
from (
  select 'an instance has an unknown status' as what, i.instance, null::int as event
  from /*schema*/instance i
  where i.status not in ('Pending', 'Running', 'Completed', 'Failed', 'Cancelled')
  union all
  select 'an instance has ended without an end, or has an end and goes on', i.instance, null
  from /*schema*/instance i
  where (i.finished_at is not null) <> (i.status in ('Completed', 'Failed', 'Cancelled'))
  union all
  select 'an instance is parked without a reason, or after its end', i.instance, null
  from /*schema*/instance i
  where i.parked_at is not null and (i.finished_at is not null or i.error is null)
  union all
  select 'an instance has half a parent', i.instance, i.parent_event
  from /*schema*/instance i
  where num_nulls(i.parent_instance, i.parent_execution, i.parent_event) not in (0, 3)
  union all
  select 'a turn row has half a lease', q.instance, null
  from /*schema*/turn_queue q
  where num_nulls(q.owner, q.owner_epoch, q.leased_at) not in (0, 3)
  union all
  select 'a turn row has a number of deliveries below 0', q.instance, null
  from /*schema*/turn_queue q
  where q.deliveries < 0
  union all
  select 'a message has half a source', m.instance, m.source
  from /*schema*/inbox m
  where num_nulls(m.execution, m.source) = 1
  union all
  select 'an activity has half a lease', a.instance, a.event
  from /*schema*/activity_queue a
  where num_nulls(a.owner, a.owner_epoch, a.leased_at) not in (0, 3)
  union all
  select 'an activity has a number of deliveries below 0', a.instance, a.event
  from /*schema*/activity_queue a
  where a.deliveries < 0
  union all
  select 'an event has a number below 1', packed.instance, packed.event_id
  from /*schema*/history_turn packed
  where packed.event_id < 1
  union all
  select 'a row of history has not as many kinds as events', packed.instance, packed.event_id
  from /*schema*/history_turn packed
  where packed.events <> cardinality(string_to_array(packed.kinds, ' '))
  union all
  select 'a row of history has not as many texts as events', packed.instance, packed.event_id
  from /*schema*/history_turn packed
  where packed.events <> 1 and packed.events <> cardinality(string_to_array(packed.data, chr(30)))
) found
order by found.instance collate "C", found.what collate "C", found.event
limit $1::bigint
