-- Goodbye: the sessions of this id are free, unless another runtime shares it.
-- Rows: at most $2. Locks: session rows, skipping locked ones. Index: session_owner_idx, node_pkey.
-- $1 owner text
-- $2 limit bigint
with left_behind as materialized (
  select s.session
  from /*schema*/session s
  where s.owner = $1::text
    and not exists (select from /*schema*/node n where n.id = $1::text)
  limit $2::bigint
  for update of s skip locked
)
update /*schema*/session s
set owner = null,
    leased_until = '-infinity'
from left_behind
where s.session = left_behind.session
returning s.session
