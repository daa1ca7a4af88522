create table extensions (
  id text primary key,
  project_id text not null references projects,
  name text,
  size_bytes bigint not null,
  -- SHA-256 of the archive, in hex.
  checksum text,
  -- The archive, sealed.
  blob text not null,
  -- Chromium's own id of an extension that runs only when a policy has it installed.
  policy_id text,
  created_at timestamptz not null,
  last_used_at timestamptz
);

-- Of two simultaneous uploads with one name, this lets one through.
create unique index extension_names on extensions (project_id, name);
create index extensions_by_project on extensions (project_id, created_at desc, id desc);
