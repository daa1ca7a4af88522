-- A machine has an id of its own. Those that run went by the ids of their sessions.
alter table sessions add column machine_id text;
update sessions set machine_id = id;
alter table sessions alter column machine_id set not null;

-- Of two sessions that want one machine, one gets it.
create unique index sessions_machine_id on sessions (machine_id);
