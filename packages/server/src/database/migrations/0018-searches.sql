create table searches (
  id text primary key,
  project_id text not null references projects on delete cascade,
  -- The answer as it was first given, as JSON, sealed for the project: it may hold what a session alone could read.
  sealed_record bytea not null,
  created_at timestamptz not null,
  expires_at timestamptz not null
);

create index searches_by_expiry on searches (expires_at);

-- Text of pages that temporary browsers have fetched for searches of a project.
create table page_contents (
  project_id text not null references projects on delete cascade,
  -- SHA-256 of URL, language and method.
  page_key bytea not null,
  sealed_content bytea not null,
  fetched_at timestamptz not null,
  primary key (project_id, page_key)
);

create index page_contents_by_age on page_contents (fetched_at);
