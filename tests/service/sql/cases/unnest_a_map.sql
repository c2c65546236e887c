-- plan: LEFT JOIN UNNEST(carts.labels) AS l | SELECT carts.id AS id, CONCAT(l.key, '=', l.value) AS name | INTO o blackhole()
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, k || '=' || v FROM carts LEFT JOIN UNNEST(labels) AS l (k, v) ON TRUE;
