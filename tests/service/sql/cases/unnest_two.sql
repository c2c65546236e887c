-- plan: CROSS JOIN UNNEST(c.tags) AS t | CROSS JOIN UNNEST(c.items) AS i | SELECT c.id AS id, CONCAT(t.element, i.sku) AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT c.id, t.tag || i.sku FROM carts AS c CROSS JOIN UNNEST(tags) AS t (tag) CROSS JOIN UNNEST(items) AS i;
