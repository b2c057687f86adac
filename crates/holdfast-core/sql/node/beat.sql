-- One heartbeat; no row means that the node was declared dead.
-- Rows: 1. Locks: the own row. Index: node_pkey; no index holds heartbeat_at, so that the update stays HOT.
-- $1 id text
-- $2 epoch bigint
update /*schema*/node
set heartbeat_at = clock_timestamp()
where id = $1::text and epoch = $2::bigint
returning epoch
