-- When the next turn or activity is due, in ms from now. Rows due for longer than 100 ms are left out: the claim that
-- came before this look-up did not want them, and they must not make their reader spin.
-- Rows: 1, from one index entry of each queue. Locks: none. Index: turn_queue_due_at_idx, activity_queue_due_at_idx.
-- No parameters.
select floor(extract(epoch from least(
  (select q.due_at
   from /*schema*/turn_queue q
   where q.due_at > statement_timestamp() - interval '100 milliseconds' and q.due_at < 'infinity'
   order by q.due_at
   limit 1),
  (select q.due_at
   from /*schema*/activity_queue q
   where q.due_at > statement_timestamp() - interval '100 milliseconds' and q.due_at < 'infinity'
   order by q.due_at
   limit 1)
) - statement_timestamp()) * 1000)::bigint as due_in_ms
