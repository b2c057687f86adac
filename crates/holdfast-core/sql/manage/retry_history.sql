-- Records that a poisoned execution is retried.
-- Rows: one. Locks: none but the turn row just made. Index: turn_queue_pkey.
-- $1 instance text
-- $2 execution bigint
-- $3 history length int (as read)
-- $4 fence bigint
insert into /*schema*/history_turn (instance, execution, event_id, events, at_ms, kinds, data)
select $1::text, $2::bigint, $3::int + 1, 1,
       floor(extract(epoch from clock_timestamp()) * 1000)::bigint, 'OrchestrationRetried', '{}'
where (select true from /*schema*/turn_queue q where q.instance = $1::text and q.fence = $4::bigint)
