-- Goodbye: the node row goes first, so that nothing can be claimed under it any more.
-- Rows: 1. Locks: the own row. Index: node_pkey.
-- $1 id text
-- $2 epoch bigint
delete from /*schema*/node
where id = $1::text and epoch = $2::bigint
returning id
