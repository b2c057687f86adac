-- Locks every turn row that the commit settles or addresses; whose lease stands is told by what comes back, and stays so
-- until the commit.
-- Rows: the instances given. Locks: turn rows, ascending. Index: turn_queue_pkey.
-- $1 instances text[]
select q.instance, q.fence, q.owner, q.owner_epoch
from /*schema*/turn_queue q
where q.instance = any ($1::text[])
order by q.instance
for no key update
