-- plan: WHERE (s.payload IS NOT NULL) | SELECT (CARDINALITY(s.items) + CARDINALITY(s.labels)) AS x, (s.payload IS NULL) AS y
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
CREATE TABLE o (x INT, y BOOLEAN) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT CARDINALITY(items) + CARDINALITY(labels), payload IS NULL FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id WHERE payload IS NOT NULL;
