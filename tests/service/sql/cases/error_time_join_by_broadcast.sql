-- error: table "d" has versions, which lookup.strategy broadcast does not keep
-- with: s_event_time out_bigint_string
CREATE TABLE d (id BIGINT, name STRING, price DECIMAL(10, 2), since TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR since AS since) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd', 'lookup.strategy' = 'broadcast'
);
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.ts ON s.k = d.id;
