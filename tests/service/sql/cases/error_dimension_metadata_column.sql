-- error: needs a Kafka record, and the table has none
-- fixed: , db STRING METADATA FROM 'row_kind' VIRTUAL =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, db STRING METADATA FROM 'row_kind' VIRTUAL) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
