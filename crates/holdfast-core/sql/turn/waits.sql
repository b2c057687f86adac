-- For claims and the reads that follow them: they skip locked rows, so what they wait for is a lock on a whole table, and
-- a wait costs nothing but time. The limit is the claim's own.
set local lock_timeout = '60s';
