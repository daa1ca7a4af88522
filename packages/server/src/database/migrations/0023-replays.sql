create table replays (
  id text primary key,
  project_id text not null references projects,
  session_id text not null references sessions on delete cascade,
  -- The server that records it.
  driver_id text not null,
  -- The beginning of the MP4 file, which describes how its fragments are encoded.
  head bytea not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  end_reason text,
  expires_at timestamptz,
  check ((finished_at is null) = (end_reason is null)),
  check ((finished_at is null) = (expires_at is null))
);

create index replays_by_session on replays (session_id);
create index replays_by_project on replays (project_id);
create index replays_by_expiry on replays (expires_at);
create index unfinished_replays on replays (driver_id) where finished_at is null;

-- The recording in pieces that can be played and decrypted alone. Each is stored as soon as it is recorded.
create table replay_parts (
  replay_id text not null references replays on delete cascade,
  number integer not null,
  blob text not null unique,
  size_bytes integer not null,
  duration_ms integer not null,
  primary key (replay_id, number)
);

alter table sessions add column keep_downloads boolean not null default false;

-- Files that pages of a session have downloaded, kept when it ended.
create table downloads (
  session_id text not null references sessions on delete cascade,
  project_id text not null references projects,
  name text not null,
  size_bytes bigint not null,
  downloaded_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (session_id, name)
);

create index downloads_by_expiry on downloads (expires_at);

create table download_parts (
  session_id text not null,
  name text not null,
  number integer not null,
  blob text not null unique,
  size_bytes integer not null,
  primary key (session_id, name, number),
  foreign key (session_id, name) references downloads on delete cascade
);
