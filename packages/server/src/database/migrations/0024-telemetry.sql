-- By the day on which the server has received them: a whole day is removed at once.
create table telemetry_events (
  session_id text not null,
  seq bigint not null,
  recorded_at timestamptz not null,
  category text not null,
  type text not null,
  -- As JSON text: a page can cause texts that the type json does not store.
  event text not null,
  primary key (session_id, seq, recorded_at)
) partition by range (recorded_at);

create index telemetry_events_by_time on telemetry_events (session_id, recorded_at);
