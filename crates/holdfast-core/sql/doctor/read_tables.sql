-- State of each table of the schema, as one JSON list: rows, dead rows, last vacuum, rights of this role.
-- Rows: one for each table of the schema. Locks: none. Index: pg_class_relname_nsp_index. No parameters.
select coalesce(json_agg(json_build_object(
    'name', c.relname,
    'live', s.n_live_tup,
    'dead', s.n_dead_tup,
    'vacuumedSecondsAgo', extract(epoch from clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::bigint,
    'isVacuumOff', exists (
      select
      from pg_catalog.pg_options_to_table(c.reloptions) o
      where o.option_name = 'autovacuum_enabled' and o.option_value in ('false', 'off', 'no', '0')
    ),
    'hasRights', (
      c.relname = 'migration' or (
        has_table_privilege(c.oid, 'SELECT') and has_table_privilege(c.oid, 'INSERT')
        and has_table_privilege(c.oid, 'UPDATE') and has_table_privilege(c.oid, 'DELETE')
      )
    )
  ) order by c.relname), '[]')::text as facts
from pg_catalog.pg_namespace n
join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relkind = 'r'
join pg_catalog.pg_stat_all_tables s on s.relid = c.oid
where n.nspname = '/*schema name*/'
