-- Deletes closed executions of one instance, the oldest first, with their history; the current one is never touched.
-- Rows: at most $4 executions and their events. Locks: execution rows, ascending, then their events.
-- Index: instance_pkey, execution_pkey, history_turn_pkey.
-- $1 instance text
-- $2 newest executions kept bigint (the current one counts)
-- $3 finished before bigint (ms; null: any)
-- $4 limit bigint
with doomed as materialized (
  select e.instance, e.execution
  from /*schema*/execution e
  where e.instance = $1::text
    and e.execution <= (select i.execution - greatest($2::bigint, 1) from /*schema*/instance i where i.instance = $1::text)
    and ($3::bigint is null or e.finished_at < timestamptz 'epoch' + $3::bigint * interval '1 millisecond')
  order by e.execution
  limit $4::bigint
  for update
),
events as (
  delete from /*schema*/history_turn packed
  using doomed
  where packed.instance = doomed.instance and packed.execution = doomed.execution
  returning packed.events
),
gone as (
  delete from /*schema*/execution e
  using doomed
  where e.instance = doomed.instance and e.execution = doomed.execution
  returning true
)
select (select count(*) from gone) as executions, (select coalesce(sum(events.events), 0) from events) as events
