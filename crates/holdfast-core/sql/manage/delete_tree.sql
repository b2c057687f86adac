-- Deletes a root with all its descendants and everything of theirs, or nothing: the tree must be the one that was locked
-- (the same root, as many members: a member never leaves) and, without force, must have ended.
-- Leases of its turns and activities end with their rows: what their holders commit later finds no fence. Standalone
-- activities (execution 0) are nobody's.
-- Rows: the tree's. Locks: inbox, activities and the rest, under the turn rows already locked.
-- Index: instance_pkey, instance_parent_idx, and the primary key of each table.
-- $1 root text
-- $2 root created_at bigint (us)
-- $3 members bigint
-- $4 force boolean
with recursive tree as (
  select i.instance, i.finished_at
  from /*schema*/instance i
  where i.instance = $1::text
    and i.parent_instance is null
    and floor(extract(epoch from i.created_at) * 1000000)::bigint = $2::bigint
  union all
  select i.instance, i.finished_at
  from tree
  join /*schema*/instance i on i.parent_instance = tree.instance
),
allowed as materialized (
  select count(*) = $3::bigint and ($4::boolean or bool_and(tree.finished_at is not null)) as ok from tree
),
doomed as materialized (
  select tree.instance from tree where (select ok from allowed)
),
turns as (
  delete from /*schema*/turn_queue q using doomed where q.instance = doomed.instance
),
keys as (
  delete from /*schema*/message_key k using doomed where k.instance = doomed.instance
),
messages as (
  delete from /*schema*/inbox m using doomed where m.instance = doomed.instance
  returning true
),
tasks as (
  delete from /*schema*/activity_queue a using doomed where a.instance = doomed.instance and a.execution > 0
  returning true
),
events as (
  delete from /*schema*/history_turn packed using doomed where packed.instance = doomed.instance
  returning packed.events
),
kept as (
  delete from /*schema*/kv v using doomed where v.instance = doomed.instance
),
closed as (
  delete from /*schema*/execution e using doomed where e.instance = doomed.instance
  returning true
),
gone as (
  delete from /*schema*/instance i using doomed where i.instance = doomed.instance
  returning true
)
-- The parts run in the order in which the answer asks for them, which is the order of locks.
select coalesce((select ok from allowed), false) as ok,
       (select count(*) from messages) + (select count(*) from tasks) as messages,
       (select coalesce(sum(events.events), 0) from events) as events,
       (select count(*) from closed) + (select count(*) from gone) as executions,
       (select count(*) from gone) as instances
