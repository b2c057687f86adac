-- One heartbeat; no row means that the node was declared dead. It brings the epochs of nodes that are silent for longer than
-- their own stale age, unless the own heartbeat comes late by more than one of their intervals: whatever held that one up
-- may have held up theirs. What is looked at is the state before this statement. Sent by every node at every interval, so
-- it reads the nodes once and does nothing more.
-- Rows: 1 changed, nodes read. Locks: the own row. Index: node_pkey; no index holds heartbeat_at, so that the update stays HOT.
-- $1 id text
-- $2 epoch bigint
-- $3 looks boolean (whether the silent ones are asked for)
-- $4 explicit boolean (the id is an explicit one: an older epoch of it is silent after three intervals)
update /*schema*/node beating
set heartbeat_at = clock_timestamp()
where beating.id = $1::text and beating.epoch = $2::bigint
returning array(
  select n.epoch
  from /*schema*/node n
  where $3::boolean
    and n.heartbeat_at < statement_timestamp() -
      case
        when $4::boolean and n.id = $1::text and n.epoch < $2::bigint then least(n.stale_after, 3 * n.heartbeat_interval)
        else n.stale_after
      end
    and n.epoch <> $2::bigint
    and (
      select true
      from /*schema*/node own
      where own.id = $1::text and own.epoch = $2::bigint
        and own.heartbeat_at > statement_timestamp() - (own.heartbeat_interval + n.heartbeat_interval)
    )
) as silent
