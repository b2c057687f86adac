-- Removes sessions whose lease is over: a free session and one without a row are the same.
-- Rows: at most $1. Locks: session rows, skipping locked ones. Index: session_leased_until_idx, session_pkey.
-- $1 limit bigint
delete from /*schema*/session s
where s.session = any (array(
  select ended.session
  from /*schema*/session ended
  where ended.leased_until < statement_timestamp()
  order by ended.leased_until
  limit $1::bigint
  for update of ended skip locked
))
returning s.session
