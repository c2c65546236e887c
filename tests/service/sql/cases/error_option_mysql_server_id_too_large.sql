-- error: option "server-id" is "4294967296", expected an id that the protocol has
-- fixed: 4294967296 => 5400
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'server-id' = '4294967296'
);
