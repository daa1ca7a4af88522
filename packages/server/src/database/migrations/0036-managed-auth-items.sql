-- The connection whose saved credential the item stands for. Not a reference: the item says that it is gone.
alter table vault_items add column connection_id text;
