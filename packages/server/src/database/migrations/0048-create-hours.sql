-- How the creates of a project went, by hours. Rows are kept for two days.
create table create_hours (
  project_id text not null references projects on delete cascade,
  at timestamptz not null,
  reserve_hits int not null,
  errors int not null,
  -- How many creates took how long, by the classes of create-times.ts.
  durations int[] not null,
  primary key (project_id, at)
);
create index create_hours_by_age on create_hours (at);
