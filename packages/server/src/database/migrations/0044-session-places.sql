-- How many places for sessions an organization uses, and a project of it. A pool takes as many as it has browsers at
-- most, leased or not; more only while it is made smaller.
create function used_session_places(in organization text, in project text, out by_organization int, out by_project int)
language sql stable as $$
  select coalesce(sum(used), 0)::int, coalesce(sum(used) filter (where project_id = project), 0)::int
  from (
    select projects.id as project_id, (
      select count(*) from sessions
      where live_project_id = projects.id and pool_id is null and state in ('starting', 'active')
    ) + (
      select coalesce(sum(greatest(size, (
        select count(*) from sessions
        where sessions.pool_id = browser_pools.id and state in ('starting', 'idle', 'active', 'returning')
      ))), 0) from browser_pools where browser_pools.project_id = projects.id
    ) as used
    from projects where organization_id = organization
  ) as projects_in_use
$$;

-- Whether a session of the project may begin. Until the end of the transaction nobody else gets a place of its
-- organization. Volatile: the places are counted as they are after the wait for the row of the organization.
create function take_session_place(project text, organization_default int) returns boolean
language plpgsql volatile as $$
declare
  limits record;
  used record;
begin
  select organizations.id, organizations.max_concurrent_sessions as of_organization,
      organizations.default_project_max_concurrent_sessions as project_default,
      projects.max_concurrent_sessions as of_project
    into limits
    from organizations join projects on projects.organization_id = organizations.id
    where projects.id = project
    for no key update of organizations;
  if not found then
    return false;
  end if;
  select * into used from used_session_places(limits.id, project);
  return used.by_organization < coalesce(limits.of_organization, organization_default)
    and used.by_project
      < coalesce(limits.of_project, limits.project_default, limits.of_organization, organization_default);
end
$$;
