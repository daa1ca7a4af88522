-- Where machines are shared, a server that is about to end takes no more sessions, and one that has ended says so: the
-- others need not wait to see that it is gone. Servers of the version before leave both null.
alter table servers
  add column draining_since timestamptz,
  add column left_at timestamptz;
