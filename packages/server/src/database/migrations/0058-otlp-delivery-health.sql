-- What the exports to a destination have come to, so that its owner sees that a collector refuses or is away.
alter table otlp_destinations
  add column consecutive_failures integer not null default 0,
  add column last_error text,
  add column last_error_at timestamptz,
  add column last_export_at timestamptz;
