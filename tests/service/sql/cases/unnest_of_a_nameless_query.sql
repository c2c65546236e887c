-- plan: CROSS JOIN UNNEST(carts.tags) AS unnamed | CROSS JOIN UNNEST(carts.items) AS i | SELECT carts.id AS id, i.sku AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, a FROM (SELECT id, tags, items FROM carts) CROSS JOIN UNNEST(tags) CROSS JOIN UNNEST(items) AS i (a, b);
