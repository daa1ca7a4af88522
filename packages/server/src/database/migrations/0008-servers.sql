-- The servers of this database. The times are the database's own: the clocks of servers may differ.
create table servers (
  -- The `driver_id` of its sessions.
  id text primary key,
  -- Since when it has told without a pause that it is there.
  up_since timestamptz not null,
  seen_at timestamptz not null
);
