-- A poisoned instance with a fresh fence; no row when there is no such instance, or it is not poisoned.
-- Rows: one. Locks: none. Index: instance_pkey.
-- $1 instance text
select i.execution, i.history_len, nextval('/*schema*/fence_seq') as fence
from /*schema*/instance i
where i.instance = $1::text and i.status = 'Failed' and i.error_code = 'POISONED'
