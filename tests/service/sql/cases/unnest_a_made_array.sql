-- plan: CROSS JOIN UNNEST(ARRAY[c.note, 'a']) AS t | SELECT c.id AS id, t.element AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT c.id, t.x FROM carts AS c CROSS JOIN UNNEST(ARRAY[c.note, 'a']) AS t (x);
