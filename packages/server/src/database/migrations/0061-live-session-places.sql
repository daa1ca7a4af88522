-- For used_session_places(), which counts the live sessions of an organization at each create. With 10,000 of them, a
-- count that reads the rows for their state took 12 ms, in which no other session of the organization can begin.
create index live_session_places on sessions (live_project_id)
  where live_project_id is not null and pool_id is null and state in ('starting', 'active');
