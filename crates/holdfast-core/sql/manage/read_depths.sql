-- How many turns and activities wait that somebody could claim now.
-- Rows: the due ones. Locks: none. Index: turn_queue_due_at_idx, activity_queue_due_at_idx, activity_queue_any_tag_idx,
-- activity_queue_session_idx.
select (
    select count(*) from /*schema*/turn_queue q where q.due_at <= statement_timestamp() and q.name is not null
  ) as turns,
  (
    select count(*) from /*schema*/activity_queue a where a.tag is null and a.session is null and a.due_at <= statement_timestamp()
  ) + (
    select count(*) from /*schema*/activity_queue a where (a.tag is not null) is true and a.session is null and a.due_at <= statement_timestamp()
  ) + (
    select count(*) from /*schema*/activity_queue a where a.session is not null and a.due_at <= statement_timestamp()
  ) as activities
