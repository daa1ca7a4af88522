-- The source of a deployment from a repository is known when its build has fetched it.
alter table deployments
  alter source_checksum drop not null,
  alter source_blob drop not null,
  add source_url text,
  add source_ref text,
  add source_path text,
  -- What the repository asks for, until it has been fetched.
  add sealed_token bytea,
  add check (source_url is not null or source_blob is not null);
