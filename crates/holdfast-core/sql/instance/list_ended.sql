-- Those of the given ids that have ended or are parked: nothing goes on by itself.
-- Rows: the ids given. Locks: none. Index: instance_pkey.
-- $1 ids text[]
select i.instance
from /*schema*/instance i
where i.instance = any ($1::text[]) and (i.finished_at is not null or i.parked_at is not null)
