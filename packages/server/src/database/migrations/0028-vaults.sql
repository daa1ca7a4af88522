create table vaults (
  id text primary key,
  project_id text not null references projects,
  name text not null,
  -- The pair of keys for encrypted values, made when it is first asked for: a JWK with its id, and the private JWK, sealed.
  public_key jsonb,
  sealed_private_key bytea,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

-- Of two simultaneous upserts of one name, this lets one create.
create unique index vault_names on vaults (project_id, name);
create index vaults_by_project on vaults (project_id, created_at desc, id desc);

create table vault_items (
  id text primary key,
  vault_id text not null references vaults on delete cascade,
  key text not null,
  status text not null check (status in ('pending_collection', 'ready')),
  description text,
  -- Definitions in their order, without values.
  fields jsonb not null,
  -- Hosts where values may be filled in. Null where the item names none.
  allowed_domains jsonb,
  -- The values by name, as JSON.
  sealed_values bytea not null,
  -- What the item was created with, values included, so that the same request finds it again.
  sealed_spec_digest bytea not null,
  -- Every change of values has the version that it is based on in its condition.
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index vault_item_keys on vault_items (vault_id, key);

-- The link under which a person enters values: at most one per item, gone with each new version of it.
create table vault_collections (
  item_id text primary key references vault_items on delete cascade,
  token_hash bytea not null unique,
  -- So that every reader gets the same link.
  sealed_token bytea not null,
  expires_at timestamptz not null
);

create table vault_item_events (
  -- Events of an item are written under the lock of its row, so their order is the order in which they become visible.
  sequence bigint generated always as identity primary key,
  id text not null unique,
  item_id text not null references vault_items on delete cascade,
  name text not null,
  browser_id text,
  data jsonb,
  created_at timestamptz not null
);

create index vault_item_events_by_item on vault_item_events (item_id, sequence);

create table vault_operations (
  id text primary key,
  item_id text not null references vault_items on delete cascade,
  session_id text not null,
  type text not null check (type in ('fill', 'webmcp_invoke')),
  state text not null check (state in ('preparing', 'writing', 'completed', 'failed', 'unknown')),
  -- The outcome of each field of a fill.
  fields jsonb,
  -- Whoever performs it is gone by then.
  held_until timestamptz not null,
  created_at timestamptz not null,
  ended_at timestamptz
);

-- A browser is filled in by one call at a time.
create unique index vault_operations_under_way on vault_operations (session_id) 
  where type = 'fill' and state in ('preparing', 'writing');
create index vault_operations_by_item on vault_operations (item_id);

create table vault_provider_configs (
  id text primary key,
  organization_id text not null references organizations,
  provider text not null check (provider in ('link', 'agentcard')),
  name text not null,
  client_id text not null,
  publishable_key text,
  sealed_client_secret bytea not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index vault_provider_config_names on vault_provider_configs (organization_id, name);
create index vault_provider_configs_by_organization on vault_provider_configs (organization_id, created_at desc, id desc);

-- The vaults that the session was created with, as their ids and how the caller named them.
alter table sessions add column vaults jsonb;
