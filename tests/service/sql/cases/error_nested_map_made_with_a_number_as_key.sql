-- error: expected MAP<STRING, INT>
-- fixed: MAP[n, n] => CAST(MAP[n, n] AS MAP<STRING, INT>)
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:shop}',
    'database-name' = 'shop', 'table-name' = 'd'
);
CREATE TABLE s (
    payload ROW<user_id BIGINT, `user` ROW<id BIGINT, mail STRING NOT NULL>, at_ms BIGINT>,
    items ARRAY<ROW<sku STRING, n INT>>, labels MAP<STRING, STRING>, n INT, k BIGINT, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x MAP<STRING, INT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP[n, n]
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
