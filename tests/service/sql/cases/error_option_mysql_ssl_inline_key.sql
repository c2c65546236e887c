-- error: Give ${secret:name} of a secret that holds a PEM text.
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, name STRING) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:a}',
    'database.ssl.mode' = 'required', 'database.ssl.key' = 'MIIBVgIBADANBg',
    'database-name' = 'shop', 'table-name' = 'd'
);
