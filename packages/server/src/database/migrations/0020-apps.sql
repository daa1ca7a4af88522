create table deployments (
  id text primary key,
  project_id text not null,
  status text not null check (status in ('queued', 'in_progress', 'running', 'failed', 'stopped')),
  status_reason text,
  version text not null,
  is_forced boolean not null,
  entrypoint text not null,
  -- The names are told, the values are not.
  env_names jsonb not null,
  sealed_env bytea not null,
  source_checksum text not null,
  source_blob text not null,
  -- What was installed for it; null when there is nothing, or nothing yet. Deployments of one organization with the
  -- same key share it; without a lock file there is no key.
  dependencies_blob text,
  dependencies_key text,
  -- How often a server has begun to build it.
  attempts integer not null default 0,
  -- Of the key that its apps use; the key itself is sealed, since they are given it.
  key_id text,
  sealed_key bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  -- One that is over is history, and does not hold its project.
  live_project_id text generated always as
    (case when status in ('queued', 'in_progress', 'running') then project_id end) stored references projects
);

create index deployments_by_project on deployments (project_id, created_at desc, id desc);
create index deployments_by_live_project on deployments (live_project_id) where live_project_id is not null;
create index deployments_by_dependencies on deployments (dependencies_key) where dependencies_key is not null;
create index deployments_by_key on deployments (key_id) where key_id is not null;

create table app_versions (
  id text primary key,
  deployment_id text not null references deployments on delete cascade,
  app_name text not null,
  version text not null,
  actions jsonb not null,
  created_at timestamptz not null,
  -- Null when another deployment has taken the place of this one, or it was deleted.
  live_project_id text references projects
);

-- Of two deployments of one version, one serves it.
create unique index live_app_versions on app_versions (live_project_id, app_name, version);
create index app_versions_by_deployment on app_versions (deployment_id);

create table invocations (
  id text primary key,
  project_id text not null,
  deployment_id text not null references deployments,
  app_name text not null,
  version text not null,
  action_name text not null,
  status text not null check (status in ('queued', 'running', 'succeeded', 'failed')),
  status_reason text,
  payload text,
  output text,
  -- The server that runs it.
  server_id text not null,
  created_at timestamptz not null,
  -- No server lets it run for longer.
  deadline timestamptz not null,
  finished_at timestamptz,
  live_project_id text generated always as (case when status in ('queued', 'running') then project_id end) stored
    references projects,
  check ((status in ('queued', 'running')) = (finished_at is null))
);

create index invocations_by_project on invocations (project_id, created_at desc, id desc);
create index invocations_by_live_project on invocations (live_project_id) where live_project_id is not null;
create index invocations_by_deployment on invocations (deployment_id);
create index invocations_by_age on invocations (created_at);

create table app_logs (
  id bigint generated always as identity primary key,
  deployment_id text not null references deployments on delete cascade,
  invocation_id text,
  message text not null,
  created_at timestamptz not null
);

create index app_logs_by_deployment on app_logs (deployment_id, id);
create index app_logs_by_invocation on app_logs (invocation_id, id) where invocation_id is not null;
create index app_logs_by_age on app_logs (created_at);

create index sessions_by_invocation on sessions (invocation_id) where invocation_id is not null;
