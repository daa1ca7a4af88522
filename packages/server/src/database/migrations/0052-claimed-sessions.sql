/*
 * A create that claims a machine of the reserve inserts a session that is active at once. When the machine is of no use,
 * the session starts anew and becomes active a second time: the key admits one event.
 */
create or replace function tell_session() returns trigger language plpgsql as $$
declare
  before text := case when tg_op = 'INSERT' then 'starting' else old.state end;
  event text := case
    when before = 'starting' and new.state = 'active' then 'session.created'
    when before = 'idle' and new.state = 'active' then 'session.acquired'
    when before = 'active' and new.state = 'returning' then 'session.released'
    when before = 'active' and new.state in ('ending', 'deleted') then 'session.ended'
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
    'reason', case when event = 'session.ended' then coalesce(new.end_reason, 'deleted') end),
    case when event = 'session.created' then event || ' ' || new.id end);
  return null;
end $$;

create trigger session_begun after insert on sessions for each row
  when (new.state = 'active') execute function tell_session();
