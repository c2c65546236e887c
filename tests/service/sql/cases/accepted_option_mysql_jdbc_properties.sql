-- warning: Option "jdbc.properties.allowLoadLocalInfile" of table "d" has no effect: it configures the Java client, and the table is read without it; TLS is set by 'database.ssl.mode'.
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT PRIMARY KEY NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc',
    'hostname' = 'db', 'username' = 'cdc', 'password' = 'x',
    'database-name' = 'shop', 'table-name' = 'd',
    'jdbc.properties.allowLoadLocalInfile' = 'true'
);
