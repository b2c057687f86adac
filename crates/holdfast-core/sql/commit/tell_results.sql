-- The results of activity tasks that have just ended and that no turn of this commit uses: each is a message for its
-- instance, which is woken unless somebody holds it or it is parked.
-- Rows: the results given. Locks: none but the turn rows already locked. Index: turn_queue_pkey, inbox_source_key.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 message kinds text[]
-- $5 message data text[]
-- $6 delays bigint[] (ms; until whoever has the result in hand is late with its turn)
with told as (
  insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
  select ended.instance, clock_timestamp(), ended.kind, ended.execution, ended.event, ended.data
  from unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[]) with ordinality
    as ended (instance, execution, event, kind, data, ix)
  where exists (select from /*schema*/turn_queue q where q.instance = ended.instance)
  order by ended.ix
  on conflict (instance, execution, source) where source is not null do nothing
  returning instance
),
woken as (
  update /*schema*/turn_queue q
  set due_at = clock_timestamp() + make_interval(secs => woken.delay_ms / 1000.0)
  from (
    select ended.instance, min(ended.delay_ms) as delay_ms
    from unnest($1::text[], $6::bigint[]) as ended (instance, delay_ms)
    where ended.instance = any (array(select told.instance from told))
    group by ended.instance
  ) woken
  where q.instance = woken.instance
    and q.owner is null
    and q.name is not null
    and not q.parked
    and q.due_at > clock_timestamp() + make_interval(secs => woken.delay_ms / 1000.0)
)
select ended.ix
from unnest($1::text[]) with ordinality as ended (instance, ix)
where (select true from /*schema*/turn_queue q where q.instance = ended.instance)
