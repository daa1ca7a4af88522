create table proxies (
  id text primary key,
  project_id text not null references projects,
  type text not null,
  name text,
  -- The name as it is compared: without case and accents.
  name_key text,
  protocol text not null,
  bypass_hosts jsonb not null,
  -- What callers see of it: host, port and username, or where it leaves.
  config jsonb not null,
  -- Password and certificates, as JSON, sealed for the project.
  sealed_secrets bytea,
  status text,
  last_checked timestamptz,
  ip_address text,
  created_at timestamptz not null,
  -- Names can be taken again, and sessions go on that used it.
  deleted_at timestamptz
);

create index proxies_by_project on proxies (project_id, created_at desc, id desc) where deleted_at is null;
create index deleted_proxies on proxies (deleted_at) where deleted_at is not null;

-- {"mode": …} or {"id": …}.
alter table sessions add column proxy jsonb not null default '{"mode": "default"}';
-- As the caller gave it, with proxies by id; null when there was none.
alter table sessions add column network jsonb;
create index sessions_by_proxy on sessions ((proxy ->> 'id')) where state in ('starting', 'active');
