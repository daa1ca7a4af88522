create table browser_pools (
  id text primary key,
  project_id text not null references projects,
  name text,
  size integer not null check (size >= 1),
  fill_rate_per_minute integer not null check (fill_rate_per_minute >= 0),
  refresh_on_profile_update boolean not null,
  -- Everything else that was asked for, with the defaults filled in.
  config jsonb not null,
  -- What the names in it stand for.
  extension_ids jsonb not null,
  proxy jsonb not null,
  profile_id text references profiles on delete set null,
  -- How many browsers may still be built regardless of the fill rate: the first ones, and those that an update replaces.
  unpaced_builds integer not null,
  -- The fill rate permits builds while this is less than a minute ahead.
  next_build_at timestamptz,
  -- Changes with every update and flush: what was read before is not written, and not built.
  version integer not null default 1,
  created_at timestamptz not null
);

-- Of two simultaneous creates or renames with one name, this lets one through.
create unique index browser_pool_names on browser_pools (project_id, name);
create index browser_pools_by_project on browser_pools (project_id, created_at desc, id desc);
create index browser_pools_by_profile on browser_pools (profile_id) where profile_id is not null;

-- Callers that wait for a browser, on whichever server, in the order in which they came.
create table pool_waiters (
  ticket bigint generated always as identity primary key,
  pool_id text not null references browser_pools on delete cascade,
  -- The server that the caller is connected to.
  server_id text not null,
  since timestamptz not null default now()
);
create index pool_waiters_by_pool on pool_waiters (pool_id, ticket);

/*
 * idle: a browser of a pool that is ready and belongs to no caller. returning: it is released, and its server has not
 * taken it from its last caller yet.
 */
alter table sessions
  -- Not a reference: ended sessions keep it when the pool is gone.
  add column pool_id text,
  -- The settings that a lease can change, as they were when the browser was built.
  add column pool_defaults jsonb,
  -- Null while the session is no caller's. One that ends so was never a caller's session, or is none any more.
  add column leased_at timestamptz,
  add column lease_number integer not null default 0,
  drop constraint sessions_state_check,
  drop constraint sessions_check,
  add constraint sessions_state_check
    check (state in ('starting', 'idle', 'active', 'returning', 'ending', 'deleted')),
  add constraint sessions_deleted_at_check check ((deleted_at is not null) = (state in ('ending', 'deleted'))),
  add constraint sessions_pool_check check (pool_id is not null or state not in ('idle', 'returning'));
create index sessions_by_pool on sessions (pool_id, state) where pool_id is not null and state <> 'deleted';

/* Tells all servers what becomes of the browsers of pools, and of those who wait for them. */
create function announce_pool_session() returns trigger language plpgsql as $$
declare
  session sessions;
  state text;
begin
  if tg_op = 'DELETE' then
    session := old;
    state := 'removed';
  else
    session := new;
    state := new.state;
  end if;
  perform pg_notify('berth_pools', json_build_object(
    'pool', session.pool_id, 'state', state, 'session', session.id, 'server', session.driver_id)::text);
  return null;
end $$;

create trigger pool_session_changed after update of state on sessions for each row
  when (new.pool_id is not null and old.state <> new.state) execute function announce_pool_session();
create trigger pool_session_removed after delete on sessions for each row
  when (old.pool_id is not null) execute function announce_pool_session();

create function announce_pool_waiter() returns trigger language plpgsql as $$
begin
  perform pg_notify('berth_pools', json_build_object('pool', old.pool_id, 'state', 'waiter left')::text);
  return null;
end $$;

create trigger pool_waiter_left after delete on pool_waiters for each row execute function announce_pool_waiter();
