/* Tells all servers which lists of which project or organization have changed, for the dashboards that show them. */
create function announce_list_change() returns trigger language plpgsql as $$
declare
  changed record;
  project text;
  organization text;
begin
  if tg_op = 'DELETE' then changed := old; else changed := new; end if;
  case tg_argv[1]
    when 'project' then project := changed.project_id;
    when 'organization' then organization := changed.organization_id;
    when 'both' then project := changed.project_id; organization := changed.organization_id;
    when 'itself' then project := changed.id; organization := changed.organization_id;
    when 'vault' then select project_id into project from vaults where id = changed.vault_id;
    when 'webhook' then select project_id into project from webhooks where id = changed.webhook_id;
    when 'connection' then select project_id into project from auth_connections where id = changed.connection_id;
  end case;
  /* Of a parent that is being deleted too, its own trigger tells. */
  if project is not null or organization is not null then
    perform pg_notify('berth_changes',
      json_build_object('list', tg_argv[0], 'project', project, 'organization', organization)::text);
  end if;
  return null;
end $$;

/* One row each: the table, the list, who owns a row, and the columns whose updates count; null for all. */
do $$
declare
  entry record;
begin
  for entry in select * from (values
    ('browser_pools', 'pools', 'project', 'version'),
    ('profiles', 'profiles', 'project', null),
    ('proxies', 'proxies', 'project', null),
    ('extensions', 'extensions', 'project', null),
    ('deployments', 'deployments', 'project', 'status, status_reason, deleted_at'),
    ('invocations', 'invocations', 'project', 'status, status_reason, output, finished_at'),
    ('auth_connections', 'connections', 'project', null),
    ('auth_flows', 'connections', 'connection', 'status, step'),
    ('credentials', 'credentials', 'project', null),
    ('credential_providers', 'providers', 'organization', null),
    ('vaults', 'vaults', 'project', null),
    ('vault_items', 'vault-items', 'vault', null),
    ('vault_provider_configs', 'vault-providers', 'organization', null),
    ('projects', 'projects', 'itself', null),
    ('api_keys', 'api-keys', 'both', null),
    ('webhooks', 'webhooks', 'project', null),
    ('webhook_deliveries', 'deliveries', 'webhook', 'status, attempts'),
    ('otlp_destinations', 'otlp', 'organization', null),
    ('audit_export_destinations', 'audit-exports', 'organization', null)
  ) entries (of_table, list, owner, columns) loop
    execute format('create trigger list_grew_or_shrank after insert or delete on %I for each row
      execute function announce_list_change(%L, %L)', entry.of_table, entry.list, entry.owner);
    execute format('create trigger list_row_changed after update %s on %I for each row
      when (old.* is distinct from new.*) execute function announce_list_change(%L, %L)',
      'of ' || entry.columns, entry.of_table, entry.list, entry.owner);
  end loop;
end $$;

/* Entries of the audit log are written many at once. */
create function announce_audit_entries() returns trigger language plpgsql as $$
begin
  perform pg_notify('berth_changes', json_build_object('list', 'audit', 'organization', organization_id)::text)
    from (select distinct organization_id from added) organizations;
  return null;
end $$;

create trigger list_grew after insert on audit_entries referencing new table as added
  for each statement execute function announce_audit_entries();

/* Recordings and downloads are shown with their session. */
create function announce_session_change() returns trigger language plpgsql as $$
declare
  changed record;
begin
  if tg_op = 'DELETE' then changed := old; else changed := new; end if;
  perform pg_notify('berth_changes',
    json_build_object('session', changed.session_id, 'project', changed.project_id)::text);
  return null;
end $$;

create trigger session_changed after insert or delete or update of finished_at on replays
  for each row execute function announce_session_change();
create trigger session_changed after insert or delete on downloads
  for each row execute function announce_session_change();
