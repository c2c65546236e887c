-- error: option "database.ssl.ca" has no effect with database.ssl.mode preferred
-- fixed: 'database.ssl.ca' => 'database.ssl.mode' = 'verify_ca', 'database.ssl.ca'
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database.ssl.ca' = '${secret:ca}',
    'database-name' = 'shop', 'table-name' = 'd'
);
