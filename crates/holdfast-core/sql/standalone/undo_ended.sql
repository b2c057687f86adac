-- Takes back what was just queued under the id of a standalone activity that ended meanwhile: the insert waited for that
-- end and did not see it. Runs in the transaction of the insert, so nobody has claimed the row.
-- Rows: the ids given. Locks: activity rows made by this transaction. Index: activity_queue_pkey, ended_activity_pkey.
-- $1 ids text[]
delete from /*schema*/activity_queue a
using unnest($1::text[]) as task (id)
where a.instance = task.id
  and a.execution = 0
  and a.event = 0
  and (select true from /*schema*/ended_activity e where e.id = task.id)
returning a.instance
