-- Renews the sessions of a node that are in use or were used a short while ago. What is left out ends with its lease.
-- Rows: the owned ones. Locks: session rows in key order, skipping locked ones. Index: session_owner_idx, node_pkey.
-- $1 owner text
-- $2 owner_epoch bigint
-- $3 sessions in use text[]
-- $4 timeout_ms bigint
-- $5 idle_ms bigint
with renewed as materialized (
  select s.session, s.session = any ($3::text[]) as in_use
  from /*schema*/session s
  where s.owner = $1::text
    and (s.session = any ($3::text[]) or s.used_at > statement_timestamp() - make_interval(secs => $5::bigint / 1000.0))
    and exists (select from /*schema*/node n where n.id = $1::text and n.epoch = $2::bigint)
  order by s.session
  for no key update of s skip locked
)
update /*schema*/session s
set leased_until = greatest(s.leased_until, clock_timestamp() + make_interval(secs => $4::bigint / 1000.0)),
    used_at = case when renewed.in_use then clock_timestamp() else s.used_at end
from renewed
where s.session = renewed.session
returning s.session
