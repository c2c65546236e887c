-- error: Did you mean
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database.ssl.mode' = 'verify_identiti',
    'database-name' = 'shop', 'table-name' = 'd'
);
