-- What a deleted proxy was used with is nobody's any more.
update proxies set sealed_secrets = null where deleted_at is not null;
alter table proxies add constraint deleted_proxies_keep_no_secrets check (deleted_at is null or sealed_secrets is null);
