-- error: UNNEST of a column that the stream does not have
-- fixed:  CROSS JOIN UNNEST(d.tags) AS t (x) => 
-- fixed: SELECT c.id, t.x => SELECT c.id, d.tags[1]
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
CREATE TABLE d (id BIGINT, tags ARRAY<STRING>, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
INSERT INTO o SELECT c.id, t.x FROM carts AS c JOIN d FOR SYSTEM_TIME AS OF c.p ON c.id = d.id CROSS JOIN UNNEST(d.tags) AS t (x);
