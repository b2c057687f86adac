-- A schema whose functions stand before those of the server: the session's statements, and the defaults of tables that it
-- makes, see the clock that the refinement sets. Nothing else of the server is touched.
-- Rows: none. Locks: none.
create schema /*schema*/clock;
create function /*schema*/clock.clock_timestamp() returns timestamptz language sql stable as
  $clock$ select timestamptz 'epoch' + current_setting('holdfast_refine.now_ms')::bigint * interval '1 millisecond' $clock$;
create function /*schema*/clock.statement_timestamp() returns timestamptz language sql stable as
  $clock$ select timestamptz 'epoch' + current_setting('holdfast_refine.now_ms')::bigint * interval '1 millisecond' $clock$;
create function /*schema*/clock.pg_postmaster_start_time() returns timestamptz language sql stable as
  $clock$ select timestamptz 'epoch' + current_setting('holdfast_refine.up_since_ms')::bigint * interval '1 millisecond' $clock$;
create function /*schema*/clock.ms(at timestamptz) returns text language sql immutable as
  $clock$ select case
    when at = 'infinity' then 'never'
    when at = '-infinity' then 'always'
    else (extract(epoch from at) * 1000)::bigint::text
  end $clock$;
set search_path = /*schema*/clock, pg_catalog;
