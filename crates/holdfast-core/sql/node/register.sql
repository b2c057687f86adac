-- Registers a node under a new epoch, with the times that it is judged by.
-- Rows: 1. Locks: the new row only.
-- $1 id text
-- $2 interval_ms bigint
-- $3 stale_after_ms bigint
insert into /*schema*/node (id, epoch, started_at, heartbeat_at, heartbeat_interval, stale_after)
values (
  $1::text,
  nextval('/*schema*/node_epoch_seq'),
  clock_timestamp(),
  clock_timestamp(),
  $2::bigint * interval '1 millisecond',
  $3::bigint * interval '1 millisecond'
)
returning epoch
