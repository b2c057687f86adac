-- What the server, the session and the role are, as one JSON object. Works without the schema.
-- Rows: one for each session of the server. Locks: none. Index: none. No parameters.
select json_build_object(
    'version', current_setting('server_version'),
    'versionNumber', current_setting('server_version_num')::int,
    'maxConnections', current_setting('max_connections')::int,
    'reservedConnections', current_setting('superuser_reserved_connections')::int,
    'sessions', (select count(*) from pg_catalog.pg_stat_activity s where s.backend_type = 'client backend'),
    'isReadOnly', pg_is_in_recovery() or current_setting('transaction_read_only') = 'on',
    'nowMs', (extract(epoch from clock_timestamp()) * 1000)::bigint,
    'hasAutovacuum', current_setting('autovacuum') = 'on' and current_setting('track_counts') = 'on',
    'isEncrypted', coalesce((select s.ssl from pg_catalog.pg_stat_ssl s where s.pid = pg_backend_pid()), false),
    'role', current_user,
    'database', current_database(),
    'hasSchema', exists (select from pg_catalog.pg_namespace n where n.nspname = '/*schema name*/'),
    'mayCreateSchema', has_database_privilege(current_database(), 'CREATE'),
    'mayUseSchema', coalesce(
      (select has_schema_privilege(n.oid, 'USAGE') from pg_catalog.pg_namespace n where n.nspname = '/*schema name*/'), false),
    'mayCreateInSchema', coalesce(
      (select has_schema_privilege(n.oid, 'CREATE') from pg_catalog.pg_namespace n where n.nspname = '/*schema name*/'), false)
  )::text as facts
