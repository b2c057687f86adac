-- Counts of everything; a parked instance counts as failed. Events of a large history are estimated, because counting reads them
-- all: the server's number of rows, and how many events they have on about a thousand pages.
-- Rows: every instance and closed execution, and every row of history up to a million. Locks: none. Index: none.
select instances.total,
       instances.running,
       instances.completed,
       instances.failed,
       instances.total + (select count(*) from /*schema*/execution) as executions,
       case
         when known.rows > 1000000 then (
           select (known.rows * coalesce(avg(packed.events), 1))::bigint
           from /*schema*/history_turn packed
           tablesample system ((
             select least(100, 100000.0 / greatest(c.relpages, 1))
             from pg_catalog.pg_class c
             where c.oid = '/*schema*/history_turn'::regclass
           ))
         )
         else (select coalesce(sum(packed.events), 0) from /*schema*/history_turn packed)
       end as events
from (
  select count(*) as total,
         count(*) filter (where i.finished_at is null and i.parked_at is null) as running,
         count(*) filter (where i.status = 'Completed') as completed,
         count(*) filter (where i.status in ('Failed', 'Cancelled') or i.parked_at is not null) as failed
  from /*schema*/instance i
) instances
cross join (
  select c.reltuples::bigint as rows from pg_catalog.pg_class c where c.oid = '/*schema*/history_turn'::regclass
) known
