create table audit_export_destinations (
  id text primary key,
  organization_id text not null references organizations,
  region text not null,
  bucket text not null,
  prefix text not null,
  role_arn text not null,
  kms_key_id text,
  external_id text not null,
  status text not null check (status in ('active', 'paused')),
  -- Entries up to this sequence are exported; null before the first activation.
  exported_sequence bigint,
  -- Changes with what a caller changes: an export that began before does not count any more.
  version integer not null default 1,
  consecutive_failures integer not null default 0,
  last_error text,
  last_error_at timestamptz,
  last_success_at timestamptz,
  next_attempt_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create index audit_export_destinations_by_organization
  on audit_export_destinations (organization_id, created_at desc, id desc);
create index audit_entries_by_sequence on audit_entries (organization_id, sequence);
