-- Null: the server's own default.
alter table organizations add column max_concurrent_sessions integer;

alter table projects
  add column updated_at timestamptz not null default now(),
  add column max_concurrent_sessions integer,
  add column max_concurrent_invocations integer;
update projects set updated_at = created_at;

/*
 * A project can be deleted when no row refers to it. What is only history does not hold it: such rows keep the id, and
 * refer to the project by a column that is null once they are over. A new table that simply refers to projects holds
 * them, as it should.
 */
alter table sessions
  drop constraint sessions_project_id_fkey,
  add column live_project_id text generated always as (case when state <> 'deleted' then project_id end) stored
    references projects;
create index sessions_by_live_project on sessions (live_project_id) where live_project_id is not null;

alter table proxies
  drop constraint proxies_project_id_fkey,
  add column live_project_id text generated always as (case when deleted_at is null then project_id end) stored
    references projects;
create index proxies_by_live_project on proxies (live_project_id) where live_project_id is not null;

alter table api_keys
  drop constraint api_keys_project_id_fkey,
  add column live_project_id text generated always as (case when deleted_at is null then project_id end) stored
    references projects,
  add column masked_key text not null default 'sk_…',
  -- The key that made it, or the organization when the operator did; with the name that it had then.
  add column created_by_id text,
  add column created_by_name text,
  add column expires_at timestamptz,
  -- What a rotation without a lifetime of its own gives the next key; null: for ever.
  add column lifetime_days integer;
update api_keys set created_by_id = organization_id;
alter table api_keys alter column created_by_id set not null;
create index api_keys_by_organization on api_keys (organization_id, created_at desc, id desc);
create index api_keys_by_live_project on api_keys (live_project_id) where live_project_id is not null;
