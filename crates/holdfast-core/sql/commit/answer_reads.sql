-- Answers the reads of surviving turns: a message with the value that an instance keeps at this moment, or null. It
-- comes after the values of the same batch, so a turn reads what it wrote.
-- Rows: the reads given. Locks: none. Index: turn_queue_pkey, kv_pkey.
-- $1 turn instances text[]
-- $2 turn fences bigint[]
-- $3 turn owners text[]
-- $4 turn owner epochs bigint[]
-- $5 turns int[]
-- $6 instances text[]
-- $7 executions bigint[]
-- $8 scheduling events int[]
-- $9 instances read text[]
-- $10 keys read text[]
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
)
insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
select asked.instance, clock_timestamp(), 'ActivityCompleted', asked.execution, asked.source,
       coalesce((select to_json(v.value)::text from /*schema*/kv v where v.instance = asked.target and v.key = asked.key), 'null')
from unnest($5::int[], $6::text[], $7::bigint[], $8::int[], $9::text[], $10::text[]) with ordinality
  as asked (turn, instance, execution, source, target, key, ix)
where (select ok from passed)[asked.turn]
order by asked.ix
on conflict (instance, execution, source) where source is not null do nothing
