create table credential_providers (
  id text primary key,
  organization_id text not null references organizations,
  provider_type text not null check (provider_type in ('onepassword')),
  name text not null,
  enabled boolean not null default true,
  priority integer not null default 0,
  cache_ttl_seconds integer not null,
  -- The token, sealed for the organization.
  sealed_token bytea not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index credential_provider_names on credential_providers (organization_id, name);
create index credential_providers_by_organization on credential_providers (organization_id, created_at desc, id desc);
