create table config_analyses (
  id text primary key,
  project_id text not null,
  -- What is opened; `target` is what it is known by: scheme, host, port and path.
  url text not null,
  target text not null,
  host text not null,
  domain text not null,
  -- Null: proxies of any country.
  allowed_proxy_countries jsonb,
  intent text,
  status text not null check (status in ('running', 'completed', 'failed', 'canceled', 'expired')),
  failure jsonb,
  -- What was told at the end; null while it runs.
  result jsonb,
  recommended_config_label text,
  success_rate double precision,
  -- How often a server has begun with it.
  attempts integer not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  last_requested_at timestamptz not null,
  cancel_requested_at timestamptz,
  finished_at timestamptz,
  -- One that is over is history, and does not hold its project.
  running_project_id text generated always as (case when status = 'running' then project_id end) stored
    references projects,
  check ((status = 'running') = (finished_at is null))
);

create index config_analyses_by_project on config_analyses (project_id, created_at desc, id desc);
create index config_analyses_by_target on config_analyses (project_id, target, created_at desc, id desc);
create index config_analyses_by_domain on config_analyses (domain, created_at);
create index config_analyses_by_expiry on config_analyses (expires_at) where status = 'running';
create index running_config_analyses on config_analyses (running_project_id) where running_project_id is not null;

-- What analyses have seen. Those that are judged are what is known of a site, for every project.
create table config_runs (
  id bigint generated always as identity primary key,
  analysis_id text not null,
  target text not null,
  host text not null,
  domain text not null,
  configuration_key text not null,
  configuration jsonb not null,
  -- Null as soon as it is judged: it holds text of the page.
  visit jsonb,
  outcome text check (outcome in ('accessed', 'blocked', 'inconclusive')),
  observed_at timestamptz not null,
  unique (analysis_id, configuration_key)
);

create index config_runs_by_target on config_runs (target) where outcome is not null;
create index config_runs_by_host on config_runs (host) where outcome is not null;
create index config_runs_by_domain on config_runs (domain) where outcome is not null;
