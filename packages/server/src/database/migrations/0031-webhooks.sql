create table webhooks (
  id text primary key,
  project_id text not null references projects,
  url text not null,
  description text,
  -- Null: every event.
  event_types text[],
  is_enabled boolean not null default true,
  disabled_reason text check (disabled_reason in ('requested', 'gone', 'failing', 'backlog')),
  disabled_at timestamptz,
  -- Since the first of the attempts that have failed, none of which succeeded. Null: the last one succeeded.
  failing_since timestamptz,
  sealed_secret bytea not null,
  -- Signs as well until it expires.
  sealed_previous_secret bytea,
  previous_secret_expires_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check (is_enabled = (disabled_reason is null) and is_enabled = (disabled_at is null)),
  check ((sealed_previous_secret is null) = (previous_secret_expires_at is null))
);

create index webhooks_by_project on webhooks (project_id, created_at desc, id desc);

-- One for each event and webhook. It is written in the transaction that makes the event a fact.
create table webhook_deliveries (
  id text primary key,
  webhook_id text not null references webhooks on delete cascade,
  event_id text not null,
  event_type text not null,
  -- JSON, sent as it is, so that every attempt signs the same bytes.
  payload text not null,
  status text not null default 'pending' check (status in ('pending', 'succeeded', 'failed', 'canceled')),
  -- Counted when an attempt begins. Whoever notes the outcome names the number.
  attempt_count integer not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  -- A server attempts it until then. When it is killed meanwhile, the next attempt is due.
  claimed_until timestamptz,
  claimed_by text,
  attempts jsonb not null default '[]',
  redelivery_of text,
  created_at timestamptz not null default clock_timestamp()
);

create index webhook_deliveries_by_webhook on webhook_deliveries (webhook_id, created_at desc, id desc);
create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at) where status = 'pending';
create index webhook_deliveries_claimed on webhook_deliveries (webhook_id) where status = 'pending' and claimed_until is not null;
create index webhook_deliveries_by_age on webhook_deliveries (created_at) where status <> 'pending';
-- An event that is told twice is delivered once.
create unique index webhook_delivery_events on webhook_deliveries (webhook_id, event_id) where redelivery_of is null;

alter table sessions add column end_reason text;

create function webhook_time(at timestamptz) returns text language sql stable as $$
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

/* Writes an event for every webhook of the project that wants it. Of two with one key, the second one writes nothing. */
create function record_webhook_event(project text, event text, at timestamptz, data jsonb, key text default null)
returns void language plpgsql as $$
declare
  told_id text := 'evt_' || coalesce(md5(key), replace(gen_random_uuid()::text, '-', ''));
begin
  insert into webhook_deliveries (id, webhook_id, event_id, event_type, payload)
  select 'whd' || left(replace(gen_random_uuid()::text, '-', ''), 21), id, told_id, event,
    json_build_object('type', event, 'timestamp', webhook_time(at), 'data', jsonb_strip_nulls(data))::text
  from webhooks
  where project_id = project and is_enabled and (event_types is null or event = any (event_types))
  -- One that is being deleted is waited for. Otherwise its reference could break the transaction of the fact.
  for key share
  on conflict (webhook_id, event_id) where redelivery_of is null do nothing;
end $$;

create function tell_session() returns trigger language plpgsql as $$
declare
  event text := case
    when old.state = 'starting' and new.state = 'active' then 'session.created'
    when old.state = 'idle' and new.state = 'active' then 'session.acquired'
    when old.state = 'active' and new.state = 'returning' then 'session.released'
    when old.state = 'active' and new.state in ('ending', 'deleted') then 'session.ended'
  end;
begin
  if event is null then return null; end if;
  perform record_webhook_event(new.project_id, event, coalesce(new.deleted_at, clock_timestamp()), jsonb_build_object(
    'session_id', new.id,
    'project_id', new.project_id,
    -- A released session has lost its name and tags.
    'name', case when new.state = 'active' then new.name else old.name end,
    'tags', case when new.state = 'active' then new.tags else old.tags end,
    'pool_id', new.pool_id,
    'invocation_id', new.invocation_id,
    'created_at', webhook_time(new.created_at),
    'ended_at', webhook_time(new.deleted_at),
    'reason', case when event = 'session.ended' then coalesce(new.end_reason, 'deleted') end));
  return null;
end $$;

create trigger session_told after update of state on sessions for each row
  when (old.state <> new.state) execute function tell_session();

create function tell_replay() returns trigger language plpgsql as $$
declare
  event text := case
    when new.finished_at is null then 'replay.started'
    when new.end_reason in ('storage_full', 'storage_failed', 'recorder_failed', 'interrupted') then 'replay.failed'
    else 'replay.finished'
  end;
begin
  perform record_webhook_event(new.project_id, event, coalesce(new.finished_at, new.started_at), jsonb_build_object(
    'replay_id', new.id,
    'session_id', new.session_id,
    'project_id', new.project_id,
    'started_at', webhook_time(new.started_at),
    'finished_at', webhook_time(new.finished_at),
    'expires_at', webhook_time(new.expires_at),
    'end_reason', new.end_reason));
  return null;
end $$;

create trigger replay_start_told after insert on replays for each row execute function tell_replay();
create trigger replay_end_told after update of finished_at on replays for each row
  when (old.finished_at is null and new.finished_at is not null) execute function tell_replay();

create function tell_profile() returns trigger language plpgsql as $$
begin
  perform record_webhook_event(new.project_id, 'profile.saved', new.updated_at, jsonb_build_object(
    'profile_id', new.id,
    'project_id', new.project_id,
    'name', new.name,
    'saved_at', webhook_time(new.updated_at)));
  return null;
end $$;

create trigger profile_save_told after update of state_blob on profiles for each row
  when (new.state_blob is not null and old.state_blob is distinct from new.state_blob) execute function tell_profile();

create function tell_deployment() returns trigger language plpgsql as $$
begin
  perform record_webhook_event(new.project_id, 'deployment.' || new.status, new.updated_at, jsonb_build_object(
    'deployment_id', new.id,
    'project_id', new.project_id,
    'status_reason', left(new.status_reason, 1000),
    'created_at', webhook_time(new.created_at),
    'updated_at', webhook_time(new.updated_at)));
  return null;
end $$;

create trigger deployment_told after update of status on deployments for each row
  when (old.status <> new.status and new.status in ('running', 'failed', 'stopped')) execute function tell_deployment();

create function tell_invocation() returns trigger language plpgsql as $$
begin
  perform record_webhook_event(new.project_id, 'invocation.' || new.status, new.finished_at, jsonb_build_object(
    'invocation_id', new.id,
    'project_id', new.project_id,
    'app_name', new.app_name,
    'version', new.version,
    'action_name', new.action_name,
    'status_reason', left(new.status_reason, 1000),
    'started_at', webhook_time(new.created_at),
    'finished_at', webhook_time(new.finished_at)));
  return null;
end $$;

create trigger invocation_told after update of status on invocations for each row
  when (old.status <> new.status and new.status in ('succeeded', 'failed')) execute function tell_invocation();
