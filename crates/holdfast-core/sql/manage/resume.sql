-- Resumes parked instances: their deliveries start anew and they are due at once. One that somebody claimed meanwhile, to
-- cancel it, is left alone.
-- Rows: the instances given. Locks: turn rows, ascending, then their instance rows. Index: turn_queue_pkey, instance_pkey.
-- $1 instances text[]
with parked as materialized (
  select q.instance
  from /*schema*/turn_queue q
  where q.instance = any ($1::text[]) and q.parked and q.owner is null
  order by q.instance
  for update of q
),
resumed as (
  update /*schema*/turn_queue q
  set parked = false,
      deliveries = 0,
      isolated = false,
      due_at = clock_timestamp()
  from parked
  where q.instance = parked.instance
  returning q.instance
)
update /*schema*/instance i
set parked_at = null,
    error = null,
    error_code = null,
    updated_at = clock_timestamp()
from resumed
where i.instance = resumed.instance
returning i.instance
