alter table organizations add column default_project_max_concurrent_sessions integer;

-- How often an organization has called a limited operation in the minute that begins at window_start.
create table request_counts (
  organization_id text not null references organizations,
  operation text not null,
  window_start timestamptz not null,
  requests integer not null,
  primary key (organization_id, operation)
);
