create table sessions (
  id text primary key,
  project_id text not null references projects,
  state text not null check (state in ('starting', 'active', 'ending', 'deleted')),
  -- The driver on whose host the machine runs: after a crash, a server mends what is its own.
  driver_id text not null,
  name text,
  tags jsonb not null,
  headless boolean not null,
  stealth boolean not null,
  gpu boolean not null,
  kiosk_mode boolean not null,
  memory text not null,
  region text not null,
  timeout_seconds integer not null,
  viewport jsonb not null,
  start_url text,
  chrome_policy jsonb not null,
  invocation_id text,
  telemetry jsonb,
  created_at timestamptz not null,
  -- When the last activity ended; null while there is some.
  idle_since timestamptz,
  deleted_at timestamptz,
  uptime_ms bigint,
  check ((deleted_at is null) = (state in ('starting', 'active'))),
  check (state <> 'deleted' or uptime_ms is not null)
);

-- Of two simultaneous creates with one name, this lets one through.
create unique index session_names on sessions (project_id, name) where state in ('starting', 'active');
create index sessions_by_project on sessions (project_id, created_at desc, id desc);
create index unfinished_sessions on sessions (driver_id, state) where state <> 'deleted';
