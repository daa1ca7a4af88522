-- Since when the session's machine is frozen; null while it runs.
alter table sessions
  add column standby_since timestamptz,
  -- What it was frozen for before that.
  add column standby_ms bigint not null default 0;

-- For how long the machine of a session ran, from the creation of the session to its end.
create function awake_milliseconds(session sessions, ended_at timestamptz) returns bigint language sql immutable as $$
  select greatest(0, extract(epoch from ended_at - session.created_at) * 1000 - session.standby_ms
    - greatest(0, coalesce(extract(epoch from ended_at - session.standby_since) * 1000, 0)))::bigint
$$;

-- Machines with a browser that no session has yet. They are their server's: it removes them when it starts again.
create table reserve_machines (
  machine_id text primary key,
  driver_id text not null,
  kind text not null,
  ready_at timestamptz not null
);
create index reserve_machines_by_kind on reserve_machines (driver_id, kind, ready_at);
