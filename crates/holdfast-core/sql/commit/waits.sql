-- A row lock is waited for shortly.
set local lock_timeout = '2s';
