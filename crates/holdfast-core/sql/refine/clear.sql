-- Empties every table that a list of commands fills.
-- Rows: all. Locks: theirs. Only in a schema of the refinement.
delete from /*schema*/node;
delete from /*schema*/node_handler;
delete from /*schema*/instance;
delete from /*schema*/execution;
delete from /*schema*/history_turn;
delete from /*schema*/turn_queue;
delete from /*schema*/inbox;
delete from /*schema*/message_key;
delete from /*schema*/activity_queue;
delete from /*schema*/kv;
delete from /*schema*/ended_activity;
delete from /*schema*/session;
