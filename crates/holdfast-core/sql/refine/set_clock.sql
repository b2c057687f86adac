-- Sets the clock of the session, and since when the server is up.
-- Rows: none. Locks: none.
-- $1 now_ms text
-- $2 up_since_ms text
select set_config('holdfast_refine.now_ms', $1::text, false), set_config('holdfast_refine.up_since_ms', $2::text, false)
