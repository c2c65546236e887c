-- plan: SELECT CAST(MAP['a', CAST(s.n AS BIGINT), d.name, s.k, 'b', 3:BIGINT] AS MAP<STRING, BIGINT>) AS a
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
CREATE TABLE o (a MAP<STRING, BIGINT>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT MAP['a', n, d.name, k, 'b', 3] FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
