-- error: a second primary key
-- fixed: , PRIMARY KEY (id) NOT ENFORCED =>
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd'
);
