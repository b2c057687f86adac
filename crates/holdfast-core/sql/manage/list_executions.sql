-- Numbers of the executions of an instance, ascending; pruned ones are left out.
-- Rows: its executions. Locks: none. Index: instance_pkey, execution_pkey.
-- $1 instance text
select e.execution
from /*schema*/execution e
where e.instance = $1::text
union all
select i.execution
from /*schema*/instance i
where i.instance = $1::text
order by 1
