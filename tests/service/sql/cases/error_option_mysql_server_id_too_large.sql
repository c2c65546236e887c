-- error: option "server-id" is "5000000000", expected ids from 1 to 4294967295
-- fixed: 5000000000 => 5400
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'server-id' = '5000000000'
);
