-- Counts of everything; a parked instance counts as failed. Events of a large history are the server's estimate, because counting reads them all.
-- Rows: every instance and closed execution, and every event up to a million. Locks: none. Index: none.
select instances.total,
       instances.running,
       instances.completed,
       instances.failed,
       instances.total + (select count(*) from /*schema*/execution) as executions,
       case
         when known.events > 1000000 then known.events
         else (select count(*) from /*schema*/history)
       end as events
from (
  select count(*) as total,
         count(*) filter (where i.finished_at is null and i.parked_at is null) as running,
         count(*) filter (where i.status = 'Completed') as completed,
         count(*) filter (where i.status in ('Failed', 'Cancelled') or i.parked_at is not null) as failed
  from /*schema*/instance i
) instances
cross join (
  select c.reltuples::bigint as events from pg_catalog.pg_class c where c.oid = '/*schema*/history'::regclass
) known
