-- All tables of the first version. Every family is keyed by the instance id first, so that a sharding extension can
-- spread the rows by it. Payloads are text holding JSON as it was given. Ids compare by bytes (collate "C").
-- One row has one due time: claimable when it is over; it serves as start delay, retry delay and lease end.
-- The tables that every turn writes have no check constraints: the server reads and compiles each anew for every statement, which
-- costs as much as the row. What they would say is asked by audit/list_malformed.sql.

create sequence /*schema*/node_epoch_seq;
create sequence /*schema*/fence_seq;

-- One row for each running runtime, with the times that it is judged by: without a heartbeat for stale_after it is dead,
-- whoever looks. No index on heartbeat_at: heartbeats stay HOT updates, which need no vacuum; one makes every session plan its
-- statements anew, so it is rare.
create table /*schema*/node (
  id text collate "C" not null,
  epoch bigint not null,
  started_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz not null default clock_timestamp(),
  heartbeat_interval interval not null,
  stale_after interval not null,
  -- Whether hints reach its process.
  listens boolean not null default false,
  constraint node_pkey primary key (id, epoch),
  constraint node_stale_after_check check (stale_after >= 4 * heartbeat_interval)
) with (fillfactor = 50, autovacuum_vacuum_threshold = 2000, autovacuum_analyze_threshold = 1000000);

-- What each running runtime can run, written once for each registration; rows of runtimes that are gone mean nothing and
-- are deleted with the next registration. kind: orchestration (with its version), activity, the tags it takes: untagged
-- work, any_tag, or one tag; replay: the range of histories that it replays, from name to version.
create table /*schema*/node_handler (
  node_id text collate "C" not null,
  node_epoch bigint not null,
  kind text collate "C" not null,
  name text collate "C" not null,
  version text collate "C" not null default '',
  constraint node_handler_pkey primary key (node_id, node_epoch, kind, name, version),
  constraint node_handler_kind_check check (kind in ('orchestration', 'activity', 'untagged', 'any_tag', 'tag', 'replay'))
);
create index node_handler_name_idx on /*schema*/node_handler (kind, name, version);

-- The addressable orchestration. Written at start, at the first turn of an execution, at a status change, when it is
-- parked and at the end. A parked one has an error and a time, but no end. replay_version: the version of this package that
-- wrote the first turn of its execution.
create table /*schema*/instance (
  instance text collate "C" not null,
  name text collate "C" not null,
  version text collate "C",
  execution bigint not null default 1,
  status text collate "C" not null default 'Pending',
  input text not null,
  output text,
  error text,
  error_code text collate "C",
  parked_at timestamptz,
  carried text,
  custom_status text,
  custom_status_version bigint not null default 0,
  parent_instance text collate "C",
  parent_execution bigint,
  parent_event int,
  last_fence bigint,
  history_len int not null default 0,
  created_at timestamptz not null default date_trunc('milliseconds', clock_timestamp()),
  started_at timestamptz,
  finished_at timestamptz,
  updated_at timestamptz not null default clock_timestamp(),
  tag text collate "C",
  starts_at timestamptz,
  replay_version bigint,
  constraint instance_pkey primary key (instance)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
create index instance_created_at_idx on /*schema*/instance (created_at, instance);
create index instance_parent_idx on /*schema*/instance (parent_instance, created_at, instance) where parent_instance is not null;

-- Executions closed by continue-as-new; the current one is on its instance.
create table /*schema*/execution (
  instance text collate "C" not null,
  execution bigint not null,
  status text collate "C" not null,
  version text collate "C",
  input text,
  output text,
  started_at timestamptz,
  finished_at timestamptz not null default clock_timestamp(),
  constraint execution_pkey primary key (instance, execution)
);

-- Append-only facts, event ids 1..n without a gap for each execution. A row holds events that one turn appended, the first of
-- them being event_id. kinds: one word for each event, kind@source or only the kind; data: their JSON texts, with the character
-- 30 between two, which no JSON holds as it is (an event alone is its text, whatever it is). No two turns append the same
-- event: the turn row is locked, a fence settles one turn, and what it appends begins behind history_len, so that a second turn
-- from there meets the key.
create table /*schema*/history_turn (
  instance text collate "C" not null,
  execution bigint not null,
  event_id int not null,
  events int not null,
  at_ms bigint not null,
  kinds text collate "C" not null,
  data text not null,
  constraint history_turn_pkey primary key (instance, execution, event_id)
) with (autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1);

-- The same with one row for each event, for people and for statements that run seldom.
create view /*schema*/history as
select packed.instance,
       packed.execution,
       packed.event_id + recorded.place::int - 1 as event_id,
       split_part(recorded.kind, '@', 1) as kind,
       nullif(split_part(recorded.kind, '@', 2), '')::int as source,
       packed.at_ms,
       recorded.data
from /*schema*/history_turn packed
cross join lateral unnest(
    string_to_array(packed.kinds, ' '),
    case when packed.events = 1 then array[packed.data] else string_to_array(packed.data, chr(30)) end
  )
  with ordinality as recorded (kind, data, place);

-- One row for each instance that has not ended. A waiting instance is due at 'infinity'. Name null: messages came
-- before the start; never claimed. Parked: only a cancel request or resuming makes it due; starts_at: before that time
-- only a cancel request does. replay_version: the newest version of this package that wrote its history, null before its
-- first turn. cut_off: its last lease ended unsettled, so activities may have run under it without a row. While it is set, and
-- while somebody holds the row, history_len, version and replay_version may be behind: turns that keep their lease leave
-- the row as it is. queue, priority and tag are room for routing.
create table /*schema*/turn_queue (
  instance text collate "C" not null,
  due_at timestamptz not null default 'infinity',
  fence bigint not null default 0,
  last_fence bigint not null default 0,
  owner text collate "C",
  owner_epoch bigint,
  leased_at timestamptz,
  deliveries int not null default 0,
  isolated boolean not null default false,
  parked boolean not null default false,
  cut_off boolean not null default false,
  starts_at timestamptz,
  name text collate "C",
  version text collate "C",
  execution bigint not null default 1,
  history_len int not null default 0,
  replay_version bigint,
  queue text collate "C" not null default 'default',
  priority smallint not null default 0,
  tag text collate "C",
  created_at timestamptz not null default clock_timestamp(),
  constraint turn_queue_pkey primary key (instance)
) with (fillfactor = 80, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
create index turn_queue_due_at_idx on /*schema*/turn_queue (due_at);
create index turn_queue_suspect_idx on /*schema*/turn_queue (due_at) where isolated or deliveries >= 2;
create index turn_queue_owner_idx on /*schema*/turn_queue (owner, owner_epoch) where owner is not null;

-- Messages waiting for an instance; a timer is a message due later, any other is due at once, and due_at tells when it
-- came. Ids rise, so they are the order.
create table /*schema*/inbox (
  instance text collate "C" not null,
  id bigint generated always as identity,
  due_at timestamptz not null default clock_timestamp(),
  kind text collate "C" not null,
  execution bigint,
  source int,
  name text collate "C",
  data text,
  constraint inbox_pkey primary key (instance, id)
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
create unique index inbox_source_key on /*schema*/inbox (instance, execution, source) where source is not null;

-- Keys of clients' messages, so that one whose commit got no answer, or that its caller sends again, comes once. They
-- outlive the message, and its instance, until they are swept.
create table /*schema*/message_key (
  instance text collate "C" not null,
  dedup_key text collate "C" not null,
  sent_at timestamptz not null default clock_timestamp(),
  constraint message_key_pkey primary key (instance, dedup_key)
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
create index message_key_sent_at_idx on /*schema*/message_key (sent_at);

-- Activity tasks waiting or leased. A standalone one has execution 0 and event 0, and says with retention_ms how long it
-- is kept once it has ended (0: not at all, -1: until somebody deletes it). heartbeat is what its body told last; lost_by is
-- the node that died while it held the task last. queue, priority, concurrency_key, dedup_key
-- and trace_context are room for routing and tracing.
create table /*schema*/activity_queue (
  instance text collate "C" not null,
  execution bigint not null,
  event int not null,
  name text collate "C" not null,
  input text not null,
  due_at timestamptz not null default clock_timestamp(),
  fence bigint not null default 0,
  last_fence bigint not null default 0,
  owner text collate "C",
  owner_epoch bigint,
  leased_at timestamptz,
  deliveries int not null default 0,
  isolated boolean not null default false,
  attempt int not null default 1,
  retry text,
  timeout_ms bigint,
  retention_ms bigint not null default 0,
  heartbeat text,
  heartbeat_at timestamptz,
  lost_by text collate "C",
  tag text collate "C",
  session text collate "C",
  queue text collate "C" not null default 'default',
  priority smallint not null default 0,
  concurrency_key text collate "C",
  dedup_key text collate "C",
  trace_context text,
  orchestration_name text collate "C",
  orchestration_version text collate "C",
  scheduled_at timestamptz not null default clock_timestamp(),
  constraint activity_queue_pkey primary key (instance, execution, event)
) with (fillfactor = 80, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
-- Tagged tasks stand apart, so that a backlog nobody serves is not read by those who do not serve it: by tag for nodes
-- that name their tags, in due order for nodes that take any.
create index activity_queue_due_at_idx on /*schema*/activity_queue (due_at) where tag is null and session is null;
create index activity_queue_tag_idx on /*schema*/activity_queue (tag, due_at) where tag is not null and session is null;
create index activity_queue_any_tag_idx on /*schema*/activity_queue (due_at) where (tag is not null) is true and session is null;
-- The tasks of sessions, with and without a tag.
create index activity_queue_session_idx on /*schema*/activity_queue (due_at) where session is not null;
create index activity_queue_suspect_idx on /*schema*/activity_queue (due_at) where isolated or deliveries >= 2;
create index activity_queue_owner_idx on /*schema*/activity_queue (owner, owner_epoch) where owner is not null;

-- Values that the code of an instance keeps under keys. Written by its turns alone, also read by clients and by the
-- turns of other instances; outlives its executions and goes with the instance.
create table /*schema*/kv (
  instance text collate "C" not null,
  key text collate "C" not null,
  value text not null,
  updated_at timestamptz not null,
  constraint kv_pkey primary key (instance, key)
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.1);

-- Standalone activities that have ended and are kept: failed ones until somebody tries them again or deletes them, the
-- others until keep_until.
create table /*schema*/ended_activity (
  id text collate "C" not null,
  name text collate "C" not null,
  input text not null,
  status text collate "C" not null,
  result text,
  heartbeat text,
  fence bigint not null,
  attempt int not null,
  deliveries int not null,
  retry text,
  timeout_ms bigint,
  retention_ms bigint not null,
  tag text collate "C",
  scheduled_at timestamptz not null,
  ended_at timestamptz not null default clock_timestamp(),
  keep_until timestamptz not null,
  constraint ended_activity_pkey primary key (id),
  constraint ended_activity_status_check check (status in ('Completed', 'Failed', 'Poisoned', 'Cancelled'))
) with (autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_analyze_threshold = 500, autovacuum_analyze_scale_factor = 0.05);
create index ended_activity_keep_until_idx on /*schema*/ended_activity (keep_until) where keep_until < 'infinity';

-- Sessions that were used: activities with the same session id go to the node id that owns it. One without a row, without
-- an owner or with a lease that is over is free.
create table /*schema*/session (
  session text collate "C" not null,
  owner text collate "C",
  leased_until timestamptz not null,
  used_at timestamptz not null,
  constraint session_pkey primary key (session)
) with (fillfactor = 80, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.1);
create index session_owner_idx on /*schema*/session (owner) where owner is not null;
create index session_leased_until_idx on /*schema*/session (leased_until);

-- Chores that one node at a time does for all: due when nobody has one in hand.
create table /*schema*/chore (
  name text collate "C" not null,
  due_at timestamptz not null default '-infinity',
  constraint chore_pkey primary key (name)
) with (fillfactor = 50);
insert into /*schema*/chore (name) values ('ended'), ('jobs'), ('unknown'), ('unserved');

-- lz4 writes and reads large payloads several times faster than the default; servers before 14, and servers built
-- without it, keep the default.
do $holdfast$
begin
  if current_setting('server_version_num')::int >= 140000 then
    execute format('alter table %s alter column data set compression lz4', '/*schema*/history_turn'::regclass);
    execute format('alter table %s alter column data set compression lz4', '/*schema*/inbox'::regclass);
    execute format('alter table %s alter column input set compression lz4', '/*schema*/activity_queue'::regclass);
    execute format('alter table %s alter column value set compression lz4', '/*schema*/kv'::regclass);
    execute format('alter table %s alter column input set compression lz4, alter column result set compression lz4',
      '/*schema*/ended_activity'::regclass);
    execute format('alter table %s alter column input set compression lz4, alter column output set compression lz4, '
      'alter column carried set compression lz4', '/*schema*/instance'::regclass);
    execute format('alter table %s alter column input set compression lz4, alter column output set compression lz4',
      '/*schema*/execution'::regclass);
  end if;
exception
  when feature_not_supported then
    null;
end
$holdfast$;
