-- Before a migration runs, under the lock: its predecessor must be the newest one that was applied.
do $holdfast$
begin
  if (select coalesce(max(version), 0) from /*schema*/migration) <> /*version*/0 - 1 then
    raise exception 'another process has migrated this schema' using errcode = 'lock_not_available';
  end if;
end
$holdfast$;
