-- error: Declare database_name STRING METADATA FROM 'database_name' VIRTUAL and table_name STRING METADATA FROM 'table_name' VIRTUAL, which
-- fixed: (id BIGINT PRIMARY KEY => (database_name STRING METADATA FROM 'database_name' VIRTUAL, table_name STRING METADATA FROM 'table_name' VIRTUAL, id BIGINT PRIMARY KEY
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop_[0-9]+', 'table-name' = 'd.*'
);
