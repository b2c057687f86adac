-- Tries to become the one listener of a key; the lock is the session's and goes with it.
-- Rows: 1. Locks: an advisory lock, tried and never waited for.
-- $1 key text
select pg_try_advisory_lock(hashtextextended($1::text, 0)) as won
