-- plan: CROSS JOIN UNNEST(carts.tags) AS t | WHERE (t.element LIKE 'a%') | SELECT carts.id AS id, t.element AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
CREATE VIEW v AS SELECT id, tag FROM carts CROSS JOIN UNNEST(tags) AS t (tag);
INSERT INTO o SELECT id, tag FROM v WHERE tag LIKE 'a%';
