-- error: metadata "table_name" is STRING, not BIGINT
-- fixed: t BIGINT METADATA => t STRING METADATA
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, t BIGINT METADATA FROM 'table_name' VIRTUAL) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
