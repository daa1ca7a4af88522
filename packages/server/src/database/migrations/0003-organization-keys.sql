-- The key under which an organization's secrets are stored, itself sealed under the master key; made with the first one.
alter table organizations add column sealed_key bytea;
