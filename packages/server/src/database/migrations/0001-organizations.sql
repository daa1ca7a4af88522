create table organizations (
  id text primary key,
  name text not null,
  created_at timestamptz not null
);

create table projects (
  id text primary key,
  organization_id text not null references organizations,
  name text not null,
  is_default boolean not null default false,
  archived_at timestamptz,
  created_at timestamptz not null,
  unique (organization_id, name)
);

create unique index one_default_project on projects (organization_id) where is_default;

-- A key is kept as its SHA-256 alone. Without a project it acts for the whole organization.
create table api_keys (
  id text primary key,
  organization_id text not null references organizations,
  project_id text references projects,
  name text not null,
  key_hash bytea not null unique,
  created_at timestamptz not null,
  deleted_at timestamptz
);
