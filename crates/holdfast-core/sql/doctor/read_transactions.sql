-- What keeps vacuum from removing dead rows, as one JSON object: old transactions, prepared ones, idle slots.
-- Rows: one for each session of the server. Locks: none. Index: none. No parameters.
select json_build_object(
    'oldestSeconds', (
      select max(extract(epoch from clock_timestamp() - s.xact_start))::bigint
      from pg_catalog.pg_stat_activity s
      where s.datname = current_database()
        and s.pid <> pg_backend_pid()
        and (s.backend_xmin is not null or s.backend_xid is not null)
    ),
    'oldestApplication', (
      select s.application_name
      from pg_catalog.pg_stat_activity s
      where s.datname = current_database()
        and s.pid <> pg_backend_pid()
        and (s.backend_xmin is not null or s.backend_xid is not null)
      order by s.xact_start
      limit 1
    ),
    'prepared', (select count(*) from pg_catalog.pg_prepared_xacts p where p.database = current_database()),
    'idleSlots', (
      select count(*)
      from pg_catalog.pg_replication_slots s
      where not s.active and (s.xmin is not null or s.catalog_xmin is not null)
    )
  )::text as facts
