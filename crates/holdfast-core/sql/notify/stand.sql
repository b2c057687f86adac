-- Says whether the runtimes of one process listen, and where each stands in the row of all that do. The rows of others are
-- as they were when the statement began.
-- Rows: nodes, few; written only on a change. Locks: the own rows, then. Index: node_pkey, read whole.
-- $1 ids text[]
-- $2 epochs bigint[]
-- $3 listens boolean
with own as (
  select own.id collate "C" as id, own.epoch
  from unnest($1::text[], $2::bigint[]) as own (id, epoch)
),
told as (
  update /*schema*/node n
  set listens = $3::boolean
  from own
  where n.id = own.id and n.epoch = own.epoch and n.listens <> $3::boolean
),
listening as materialized (
  select n.id, n.epoch, own.id is not null as is_own
  from /*schema*/node n
  left join own on own.id = n.id and own.epoch = n.epoch
  where case when own.id is null then n.listens else $3::boolean end
)
select own.epoch,
       (select count(*) from listening l where (l.id, l.epoch) < (own.id, own.epoch)) as before,
       (select count(*) from listening) as listening,
       (select count(*) from listening l where not l.is_own) as others
from own
