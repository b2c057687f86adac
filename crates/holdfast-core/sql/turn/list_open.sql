-- What an instance whose history cannot be read has under way: its activity tasks, and its children that have not ended.
-- An activity without a row is not among them. The last row tells the highest event id there is, whatever was recorded.
-- Rows: those. Locks: none. Index: activity_queue_pkey, instance_parent_idx, history_turn_pkey.
-- $1 instance text
-- $2 execution bigint
select a.event, null::text as child, null::int as last_event
from /*schema*/activity_queue a
where a.instance = $1::text and a.execution = $2::bigint
union all
select null::int, i.instance, null::int
from /*schema*/instance i
where i.parent_instance = $1::text and i.parent_execution = $2::bigint and i.finished_at is null
union all
select null::int, null::text, max(packed.event_id + packed.events - 1)
from /*schema*/history_turn packed
where packed.instance = $1::text and packed.execution = $2::bigint
