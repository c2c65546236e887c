-- error: expected a whole number from 1 to 65535
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'port' = '70000'
);
