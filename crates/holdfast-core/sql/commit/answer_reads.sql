-- Answers the reads of surviving turns: a message with the value that an instance keeps at this moment, or null. It
-- comes after the values of the same batch, so a turn reads what it wrote.
-- Rows: the reads given. Locks: none. Index: turn_queue_pkey, kv_pkey.
-- $1 instances text[]
-- $2 executions bigint[]
-- $3 scheduling events int[]
-- $4 instances read text[]
-- $5 keys read text[]
insert into /*schema*/inbox (instance, due_at, kind, execution, source, data)
select asked.instance, clock_timestamp(), 'ActivityCompleted', asked.execution, asked.source,
       coalesce((select to_json(v.value)::text from /*schema*/kv v where v.instance = asked.target and v.key = asked.key), 'null')
from unnest($1::text[], $2::bigint[], $3::int[], $4::text[], $5::text[]) with ordinality
  as asked (instance, execution, source, target, key, ix)
order by asked.ix
on conflict (instance, execution, source) where source is not null do nothing
