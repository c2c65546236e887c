-- error: Declare table_name STRING METADATA FROM 'table_name' VIRTUAL, which will be part of the PRIMARY KEY.
-- fixed: (id BIGINT PRIMARY KEY => (table_name STRING METADATA FROM 'table_name' VIRTUAL, id BIGINT PRIMARY KEY
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd.*'
);
