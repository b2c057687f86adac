-- Every row of every table as a key, its fences, its message ids and the text of the rest; what the model's contents
-- (sim/refine/contents.rs) say word for word. ms() and the clock are those of clock.sql.
-- Rows: all. Locks: none.
select format('node %s#%s', n.id, n.epoch) as key,
       '{}'::bigint[] as fences,
       '{}'::bigint[] as messages,
       format('heartbeat=%s interval=%s stale=%s', ms(n.heartbeat_at),
              (extract(epoch from n.heartbeat_interval) * 1000)::bigint, (extract(epoch from n.stale_after) * 1000)::bigint) as rest
from /*schema*/node n
union all
select format('turn %s', q.instance), array[q.fence, q.last_fence], '{}'::bigint[],
       format('due=%s owner=%s#%s leased=%s deliveries=%s isolated=%s parked=%s cut=%s starts=%s name=%s version=%s execution=%s len=%s replay=%s',
              ms(q.due_at), q.owner, q.owner_epoch, ms(q.leased_at), q.deliveries, q.isolated, q.parked, q.cut_off, ms(q.starts_at),
              q.name, q.version, q.execution, q.history_len, q.replay_version)
from /*schema*/turn_queue q
union all
select format('message %s %s', m.instance, lpad((row_number() over (partition by m.instance order by m.id))::text, 6, '0')),
       '{}'::bigint[], array[m.id],
       format('due=%s kind=%s execution=%s source=%s name=%s data=%s', ms(m.due_at), m.kind, m.execution, m.source, m.name, m.data)
from /*schema*/inbox m
union all
select format('key %s %s', k.instance, k.dedup_key), '{}'::bigint[], '{}'::bigint[], ''
from /*schema*/message_key k
union all
select format('activity %s/%s/%s', a.instance, a.execution, a.event), array[a.fence, a.last_fence], '{}'::bigint[],
       format('due=%s owner=%s#%s leased=%s deliveries=%s isolated=%s lost=%s told=%s session=%s of=%s@%s '
              'name=%s input=%s attempt=%s retry=%s timeout=%s retention=%s heartbeat=%s tag=%s scheduled=%s',
              ms(a.due_at), a.owner, a.owner_epoch, ms(a.leased_at), a.deliveries, a.isolated, a.lost_by, ms(a.heartbeat_at),
              a.session, a.orchestration_name, a.orchestration_version,
              a.name, a.input, a.attempt, a.retry, a.timeout_ms, a.retention_ms, a.heartbeat, a.tag, ms(a.scheduled_at))
from /*schema*/activity_queue a
union all
select format('instance %s', i.instance), array[coalesce(i.last_fence, 0)], '{}'::bigint[],
       format('name=%s version=%s execution=%s status=%s input=%s output=%s error=%s parked=%s carried=%s custom=%s parent=%s/%s/%s replay=%s',
              i.name, i.version, i.execution, i.status, i.input, i.output, i.error, i.parked_at is not null, i.carried,
              i.custom_status, i.parent_instance, i.parent_execution, i.parent_event, i.replay_version)
from /*schema*/instance i
union all
select format('execution %s/%s', e.instance, e.execution), '{}'::bigint[], '{}'::bigint[],
       format('version=%s input=%s output=%s', e.version, e.input, e.output)
from /*schema*/execution e
union all
select format('event %s/%s/%s', h.instance, h.execution, lpad(h.event_id::text, 6, '0')), '{}'::bigint[], '{}'::bigint[],
       format('kind=%s source=%s at=%s data=%s', h.kind, h.source, h.at_ms, h.data)
from /*schema*/history h
union all
select format('ended %s', e.id), array[e.fence], '{}'::bigint[],
       format('status=%s result=%s deliveries=%s ended=%s keep=%s '
              'name=%s input=%s attempt=%s retry=%s timeout=%s retention=%s heartbeat=%s tag=%s scheduled=%s',
              e.status, e.result, e.deliveries, ms(e.ended_at), ms(e.keep_until),
              e.name, e.input, e.attempt, e.retry, e.timeout_ms, e.retention_ms, e.heartbeat, e.tag, ms(e.scheduled_at))
from /*schema*/ended_activity e
union all
select format('session %s', s.session), '{}'::bigint[], '{}'::bigint[],
       format('owner=%s until=%s used=%s', s.owner, ms(s.leased_until), ms(s.used_at))
from /*schema*/session s
union all
select format('value %s %s', v.instance, v.key), '{}'::bigint[], '{}'::bigint[], format('%s at=%s', v.value, ms(v.updated_at))
from /*schema*/kv v
