-- Says what a node can run, and forgets what nodes could that are gone.
-- Rows: the handlers given, and those of nodes without a row. Locks: none but those rows. Index: node_handler_pkey, node_pkey.
-- $1 id text
-- $2 epoch bigint
-- $3 kinds text[]
-- $4 names text[]
-- $5 versions text[] (empty but for orchestrations)
with forgotten as (
  delete from /*schema*/node_handler h
  where not exists (select from /*schema*/node n where n.id = h.node_id and n.epoch = h.node_epoch)
)
insert into /*schema*/node_handler (node_id, node_epoch, kind, name, version)
select $1::text, $2::bigint, handler.kind, handler.name, handler.version
from unnest($3::text[], $4::text[], $5::text[]) as handler (kind, name, version)
where exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
on conflict (node_id, node_epoch, kind, name, version) do nothing
