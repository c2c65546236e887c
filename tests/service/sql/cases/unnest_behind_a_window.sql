-- plan: CROSS JOIN UNNEST(carts.tags) AS t | SELECT carts.id AS id, t.element AS name
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, t.x FROM TABLE(TUMBLE(TABLE carts, DESCRIPTOR(p), INTERVAL '1' DAY)) CROSS JOIN UNNEST(tags) AS t (x);
