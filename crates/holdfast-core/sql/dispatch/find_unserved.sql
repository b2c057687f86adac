-- Work that is due for ten seconds, that nobody has, and that no live node can run. A node counts as live until
-- it is stale. A turn row that a lease was cut off of may lack what its instance knows.
-- Rows: at most 10 names of each queue, found among the first due rows of each. Locks: none.
-- Index: turn_queue_due_at_idx, activity_queue_due_at_idx, activity_queue_any_tag_idx, activity_queue_session_idx,
-- node_handler_name_idx, node_pkey, instance_pkey.
-- No parameters.
(
  select 'orchestration' as kind, due.name, due.version, null::text as tag, due.replay_version, count(*) as waiting
  from (
    select q.name,
           case when q.version is null and q.cut_off then i.version else q.version end as version,
           case when q.cut_off then greatest(q.replay_version, i.replay_version) else q.replay_version end as replay_version
    from /*schema*/turn_queue q
    left join lateral (
      select s.version, s.replay_version from /*schema*/instance s where s.instance = q.instance and q.cut_off
    ) i on true
    where q.due_at <= statement_timestamp() - interval '10 seconds' and q.owner is null
    order by q.due_at
    limit 1000
  ) due
  where not exists (
    select
    from /*schema*/node_handler h
    join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
    where h.kind = 'orchestration' and h.name = due.name and (due.version is null or h.version = due.version)
      and n.heartbeat_at > statement_timestamp() - n.stale_after
      and (due.replay_version is null or exists (
        select
        from /*schema*/node_handler r
        where r.node_id = h.node_id and r.node_epoch = h.node_epoch and r.kind = 'replay'
          and due.replay_version between r.name::bigint and r.version::bigint
      ))
  )
  group by due.name, due.version, due.replay_version
  limit 10
)
union all
(
  select 'activity', due.name, null, due.tag, null, count(*)
  from (
    (
      select a.name, a.tag
      from /*schema*/activity_queue a
      where a.tag is null and a.session is null
        and a.due_at <= statement_timestamp() - interval '10 seconds' and a.owner is null
      order by a.due_at
      limit 500
    )
    union all
    (
      select a.name, a.tag
      from /*schema*/activity_queue a
      where (a.tag is not null) is true and a.session is null
        and a.due_at <= statement_timestamp() - interval '10 seconds' and a.owner is null
      order by a.due_at
      limit 500
    )
    union all
    (
      select a.name, a.tag
      from /*schema*/activity_queue a
      where a.session is not null
        and a.due_at <= statement_timestamp() - interval '10 seconds' and a.owner is null
      order by a.due_at
      limit 500
    )
  ) due
  where not exists (
    select
    from /*schema*/node_handler h
    join /*schema*/node n on n.id = h.node_id and n.epoch = h.node_epoch
    where h.kind = 'activity' and h.name = due.name
      and n.heartbeat_at > statement_timestamp() - n.stale_after
      and exists (
        select
        from /*schema*/node_handler t
        where t.node_id = h.node_id and t.node_epoch = h.node_epoch
          and case
                when due.tag is null then t.kind = 'untagged'
                else t.kind = 'any_tag' or (t.kind = 'tag' and t.name = due.tag)
              end
      )
  )
  group by due.name, due.tag
  limit 10
)
