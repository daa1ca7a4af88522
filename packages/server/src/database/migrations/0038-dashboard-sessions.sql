-- A browser that is signed in to the dashboard, with the rights of the key that it signed in with. Only hashes are kept.
create table dashboard_sessions (
  token_hash bytea primary key,
  key_id text not null references api_keys on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index dashboard_sessions_by_key on dashboard_sessions (key_id, created_at desc);

-- The code of a link that signs in once.
create table dashboard_links (
  code_hash bytea primary key,
  key_id text not null references api_keys on delete cascade,
  expires_at timestamptz not null
);
