-- What all servers of the database are together, where they share machines: its name, and the authority that certifies
-- servers and machines to each other. The authority's key is sealed.
create table installation (
  is_only boolean primary key default true check (is_only),
  name text not null,
  certificate text not null,
  sealed_key bytea not null,
  created_at timestamptz not null default now()
);
