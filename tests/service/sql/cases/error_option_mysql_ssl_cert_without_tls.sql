-- error: option "database.ssl.cert" has no effect with database.ssl.mode preferred
-- fixed: 'database.ssl.cert' => 'database.ssl.mode' = 'required', 'database.ssl.cert'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database.ssl.cert' = '${secret:cert}', 'database.ssl.key' = '${secret:key}',
    'database-name' = 'shop', 'table-name' = 'd'
);
