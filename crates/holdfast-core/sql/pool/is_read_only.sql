-- Whether the server takes no writes: a standby, or one set so.
-- Rows: one. Locks: none. Index: none.
show transaction_read_only
