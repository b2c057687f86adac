-- Registers a node under a new epoch.
-- Rows: 1. Locks: the new row only.
-- $1 id text
insert into /*schema*/node (id, epoch, started_at, heartbeat_at)
values ($1::text, nextval('/*schema*/node_epoch_seq'), clock_timestamp(), clock_timestamp())
returning epoch
