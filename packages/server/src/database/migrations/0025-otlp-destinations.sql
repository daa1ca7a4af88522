create table otlp_destinations (
  id text primary key,
  organization_id text not null references organizations,
  name text not null,
  endpoint text not null,
  description text,
  header_names jsonb not null,
  -- The headers as JSON.
  sealed_headers bytea not null,
  -- Changes with every update: what exports to it is set up anew.
  version integer not null default 1,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create unique index otlp_destination_names on otlp_destinations (organization_id, lower(name));

-- Where the telemetry of the session goes, also while none is captured.
alter table sessions add column otlp_destination_id text;
-- A session that is over does not hold its destination.
alter table sessions add column bound_otlp_destination_id text
  generated always as (case when state in ('starting', 'active') then otlp_destination_id end) stored
  references otlp_destinations;
create index sessions_by_otlp_destination on sessions (bound_otlp_destination_id)
  where bound_otlp_destination_id is not null;
