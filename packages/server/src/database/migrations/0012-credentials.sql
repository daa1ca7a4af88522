create table credentials (
  id text primary key,
  project_id text not null references projects,
  name text not null,
  domain text not null,
  sso_provider text,
  -- Names of the values, in the order in which they came.
  value_keys jsonb not null,
  -- Algorithm, digits and period of the one-time codes; null where there is no secret for them.
  totp jsonb,
  -- Values and secret, as JSON, sealed for the project.
  sealed_secrets bytea not null,
  -- Changes with every write: who has read an older one reads again.
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- Of two simultaneous creates or renames with one name, this lets one through.
create unique index credential_names on credentials (project_id, name);
create index credentials_by_project on credentials (project_id, created_at desc, id desc);
