-- Head of a migration's own transaction: takes the advisory lock or gives up at once, makes what is missing.
-- The lock belongs to the transaction, so a process that dies releases it and leaves nothing half-made.
set local statement_timeout = '60s';
set local lock_timeout = '10s';
set local idle_in_transaction_session_timeout = '10s';
do $holdfast$
begin
  if not pg_try_advisory_xact_lock(hashtextextended('holdfast migration ' || '/*schema name*/', 0)) then
    raise exception 'another process migrates this schema' using errcode = 'lock_not_available';
  end if;
  if not exists (select from pg_catalog.pg_namespace where nspname = '/*schema name*/') then
    execute format('create schema %I', '/*schema name*/');
  end if;
end
$holdfast$;
create table if not exists /*schema*/migration (
  version int not null,
  name text not null,
  applied_at timestamptz not null default clock_timestamp(),
  constraint migration_pkey primary key (version)
);
