-- What the servers of one database have to know of each other.
alter table servers
  -- Where the other servers reach it. Null: it uses the database alone.
  add column address text,
  add column driver text,
  -- Tells servers with different master keys apart, and nothing about the keys.
  add column key_check text,
  add column sessions integer not null default 0,
  -- What new sessions can take, as an estimate. Null: not known.
  add column free_sessions integer,
  add column free_memory_bytes bigint;

-- The blob that shows a server whether it has the same blobs as the others.
create table shared_blobs (
  is_only boolean primary key default true check (is_only),
  marker text not null
);
