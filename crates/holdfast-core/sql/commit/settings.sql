-- Head of every transaction that claims, renews, recovers or commits. A client that vanishes never pins rows. Plans: every
-- statement of these transactions looks rows up by index from a short list of keys, whatever the statistics say of a table that
-- was empty when the plan was made; the planner is told so, because a plan cached then reads whole tables later. For the same
-- reason a look-up inside an expression is written (select true ...): for exists the planner may hash the whole table.
-- A row lock is waited for shortly. Claims and the reads that follow them skip locked rows, so what they wait for is a lock on a
-- whole table, and a wait costs nothing but time: their limit is the claim's own.
-- Rows: one. Locks: none. Index: none.
select set_config('lock_timeout', '/*lock timeout*/', true),
       set_config('statement_timeout', '60s', true),
       set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('enable_seqscan', 'off', true),
       set_config('enable_bitmapscan', 'off', true),
       set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true),
       set_config('jit', 'off', true),
       set_config('plan_cache_mode', 'force_generic_plan', true)
