-- One step through the instances without a parent, oldest first: those of a stretch that pass, and where it ends. The
-- answer has a row without an instance when none passes, and no row when the stretch is empty.
-- Rows: at most $6 read, at most $5 given. Locks: none. Index: instance_created_at_idx.
-- $1 ended only boolean
-- $2 finished before bigint (ms; null: any)
-- $3 after: created_at bigint (ms; null: from the first)
-- $4 after: instance text
-- $5 limit bigint
-- $6 stretch bigint
with stretch as materialized (
  select i.instance, i.created_at, i.finished_at, i.parent_instance
  from /*schema*/instance i
  where (i.created_at, i.instance) > (
      coalesce(timestamptz 'epoch' + $3::bigint * interval '1 millisecond', '-infinity'),
      coalesce($4::text, '')
    )
    and i.created_at < coalesce(timestamptz 'epoch' + $2::bigint * interval '1 millisecond', 'infinity')
  order by i.created_at, i.instance
  limit $6::bigint
),
tail as (
  select round(extract(epoch from s.created_at) * 1000)::bigint as created_at_ms,
         s.instance,
         (select count(*) from stretch) as seen
  from stretch s
  order by s.created_at desc, s.instance desc
  limit 1
),
wanted as (
  select s.instance, s.created_at
  from stretch s
  where s.parent_instance is null
    and (not $1::boolean or s.finished_at is not null)
    and ($2::bigint is null or s.finished_at < timestamptz 'epoch' + $2::bigint * interval '1 millisecond')
  order by s.created_at, s.instance
  limit $5::bigint
)
select w.instance,
       round(extract(epoch from w.created_at) * 1000)::bigint as created_at_ms,
       tail.created_at_ms as tail_ms,
       tail.instance as tail_instance,
       tail.seen
from tail
left join wanted w on true
order by w.created_at, w.instance
