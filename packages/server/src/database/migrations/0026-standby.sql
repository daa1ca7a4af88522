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
