-- Head of every transaction that claims, renews, recovers or commits, behind how long it waits for locks: a client that
-- vanishes never pins rows. Plans: every statement of these transactions looks rows up by index
-- from a short list of keys, whatever the statistics say of a table that was empty when the plan was made; the
-- planner is told so, because a plan cached then reads whole tables later. For the same reason a look-up inside an
-- expression is written (select true ...): for exists the planner may hash the whole table.
set local statement_timeout = '60s';
set local idle_in_transaction_session_timeout = '5s';
set local enable_seqscan = off;
set local enable_bitmapscan = off;
set local enable_hashjoin = off;
set local enable_mergejoin = off;
set local jit = off;
set local plan_cache_mode = force_generic_plan;
