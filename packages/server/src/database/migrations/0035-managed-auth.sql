create table auth_connections (
  id text primary key,
  project_id text not null references projects,
  domain text not null,
  profile_name text not null,
  -- Null once the profile was deleted: the next login makes it again.
  profile_id text references profiles on delete set null,
  login_url text,
  -- At most one of the two. A credential or provider that is deleted is unlinked.
  credential_id text references credentials on delete set null,
  credential_provider_id text references credential_providers on delete set null,
  credential_path text,
  credential_auto boolean not null default false,
  allowed_domains jsonb,
  health_check_interval integer not null,
  health_checks boolean not null,
  auto_reauth boolean not null,
  save_credentials boolean not null,
  record_session boolean not null,
  -- Proxy, region, stealth and telemetry of its browsers, as they were asked for.
  browser jsonb not null,
  status text not null check (status in ('AUTHENTICATED', 'NEEDS_AUTH')),
  last_auth_check_at timestamptz,
  -- When a login succeeded first; null before.
  authenticated_at timestamptz,
  post_login_url text,
  -- By what the last login was known to have succeeded.
  evidence jsonb,
  -- What a person had to do in the last login besides what is stored.
  requirements jsonb,
  -- The version of the credential that the site has refused: it is not tried again.
  refused_credential text,
  -- Null while it is not checked.
  next_check_at timestamptz,
  -- Changes with every update.
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- Of two simultaneous creates for one profile and site, this lets one through.
create unique index auth_connection_sites on auth_connections (project_id, profile_name, domain);
create index auth_connections_by_project on auth_connections (project_id, created_at desc, id desc);
create index auth_connections_by_profile on auth_connections (profile_id) where profile_id is not null;
create index auth_connections_by_credential on auth_connections (credential_id) where credential_id is not null;
create index auth_connections_by_provider on auth_connections (credential_provider_id)
  where credential_provider_id is not null;
create index auth_connections_to_check on auth_connections (next_check_at) where next_check_at is not null;

-- One attempt to log in. Every change has the version that it is based on, or the question that it answers, in its condition.
create table auth_flows (
  id text primary key,
  connection_id text not null references auth_connections on delete cascade,
  flow_type text not null check (flow_type in ('LOGIN', 'REAUTH')),
  -- Whether a person can be asked.
  is_attended boolean not null,
  status text not null check (status in ('IN_PROGRESS', 'SUCCESS', 'FAILED', 'EXPIRED', 'CANCELED')),
  step text not null
    check (step in ('DISCOVERING', 'AWAITING_INPUT', 'AWAITING_EXTERNAL_ACTION', 'SUBMITTING', 'COMPLETED')),
  -- Who drives it. Null until a job has taken it.
  server_id text,
  -- Not a reference: sessions are history of their own.
  session_id text,
  -- What its browser is, where that differs from the connection.
  options jsonb not null,
  -- The page that waits for somebody, without any value.
  page jsonb,
  -- Which of its fields are filled in from what is stored, and not asked for.
  known_refs jsonb not null default '[]',
  interaction_id text,
  -- What was answered and not typed yet, as JSON.
  sealed_answer bytea,
  -- What was answered in all, by the names under which it is kept, as JSON.
  sealed_inputs bytea,
  -- What was typed from a credential on which host. Written before it is typed, so that it is never typed again.
  typed jsonb not null default '[]',
  -- The page on which something is being typed or pressed.
  acting_on text,
  requirements jsonb not null default '[]',
  -- Hosts that the login has led to, where its connection restricts none.
  led_to jsonb not null default '[]',
  website_error text,
  external_action_message text,
  error_code text,
  error_message text,
  post_login_url text,
  -- Set when the site says that the profile is logged in: what remains is to keep the profile.
  evidence jsonb,
  sso_provider text,
  replay_id text,
  telemetry_captured boolean not null default false,
  handoff_hash bytea,
  sealed_handoff bytea,
  handoff_used_at timestamptz,
  handoff_tries integer not null default 0,
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  expires_at timestamptz not null,
  -- When it has waited for somebody for too long.
  waits_until timestamptz,
  ended_at timestamptz,
  check ((status = 'IN_PROGRESS') = (ended_at is null)),
  check ((status = 'IN_PROGRESS') = (step <> 'COMPLETED'))
);

-- A connection has one flow at a time.
create unique index auth_flows_in_progress on auth_flows (connection_id) where status = 'IN_PROGRESS';
create index auth_flows_by_connection on auth_flows (connection_id, created_at desc, id desc);
create index auth_flows_by_server on auth_flows (server_id) where status = 'IN_PROGRESS';

create table auth_checks (
  id text primary key,
  connection_id text not null references auth_connections on delete cascade,
  -- Null while it runs.
  status text check (status in ('AUTHENTICATED', 'NEEDS_AUTH')),
  previous_status text not null,
  error_code text,
  error_message text,
  session_id text,
  replay_id text,
  telemetry_captured boolean not null default false,
  created_at timestamptz not null,
  ended_at timestamptz
);

create index auth_checks_by_connection on auth_checks (connection_id, created_at desc, id desc);
