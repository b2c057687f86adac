-- Frees the sessions of nodes that have no row left under their id.
-- Rows: at most $1, found among the owned ones: as many as live nodes may have, and those of nodes that are gone. Locks: session rows, skipping locked ones. Index: session_owner_idx.
-- $1 limit bigint
with lost as materialized (
  select s.session
  from /*schema*/session s
  where s.owner is not null
    and not exists (select from /*schema*/node n where n.id = s.owner)
  limit $1::bigint
  for update of s skip locked
)
update /*schema*/session s
set owner = null,
    leased_until = '-infinity'
from lost
where s.session = lost.session
returning s.session
