-- error: option "database.ssl.cert" needs "database.ssl.key"
-- fixed: 'required', => 'required', 'database.ssl.key' = '${secret:key}',
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database.ssl.mode' = 'required', 'database.ssl.cert' = '${secret:cert}',
    'database-name' = 'shop', 'table-name' = 'd'
);
