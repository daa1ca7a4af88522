create table audit_entries (
  -- In the order in which entries become visible: they are written under one lock. A number that was seen once is the
  -- end of something that does not change any more.
  sequence bigint generated always as identity primary key,
  event_id text not null unique,
  organization_id text not null references organizations,
  occurred_at timestamptz not null,
  service text not null,
  auth_strategy text not null,
  user_id text not null,
  email text not null,
  status integer not null,
  method text not null,
  path text not null,
  route text not null,
  domain text not null,
  duration_ms integer not null,
  client_ip text not null,
  user_agent text not null
);

create index audit_entries_by_time on audit_entries (organization_id, occurred_at desc, event_id desc);
create index audit_entries_by_age on audit_entries (occurred_at);
