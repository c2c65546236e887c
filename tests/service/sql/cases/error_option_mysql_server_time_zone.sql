-- error: option "server-time-zone" is "Mars/Olympus", which is no time zone
-- fixed: Mars/Olympus => Europe/Berlin
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'server-time-zone' = 'Mars/Olympus'
);
