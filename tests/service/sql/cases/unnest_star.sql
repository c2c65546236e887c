-- plan: CROSS JOIN UNNEST(carts.tags) AS unnamed | SELECT carts.id AS id, carts.tags AS tags, carts.items AS items, carts.labels AS labels, carts.note AS note, carts.p AS p, unnamed.element AS EXPR$0 | INTO preview print(, 100 rows)
CREATE TABLE carts (
    id BIGINT, tags ARRAY<STRING>, items ARRAY<ROW<sku STRING, size INT>>, labels MAP<STRING, STRING>,
    note STRING, p AS PROCTIME()
) WITH (
    'connector' = 'kafka', 'topic' = 'carts', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SELECT * FROM carts CROSS JOIN UNNEST(tags);
