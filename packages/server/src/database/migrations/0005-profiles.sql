create table profiles (
  id text primary key,
  project_id text not null references projects,
  name text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  last_used_at timestamptz,
  -- The blob that holds the saved state; null while nothing was saved.
  state_blob text,
  -- When the session ended whose state this is: the last one to end wins, whichever is saved first.
  state_ended_at timestamptz,
  check ((state_blob is null) = (state_ended_at is null))
);

-- Of two simultaneous creates or renames with one name, this lets one through.
create unique index profile_names on profiles (project_id, name);
create index profiles_by_project on profiles (project_id, created_at desc, id desc);
create unique index profile_blobs on profiles (state_blob);

-- Deleting a profile takes it from its sessions: what they would have saved has no place any more.
alter table sessions add column profile_id text references profiles on delete set null;
-- Null for a session that never had a profile.
alter table sessions add column profile_save_changes boolean;
create index sessions_by_profile on sessions (profile_id) where profile_id is not null;
