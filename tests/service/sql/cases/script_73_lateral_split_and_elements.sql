-- plan: CROSS JOIN UNNEST(SPLIT(p.tags, ',')) AS t | CROSS JOIN UNNEST(p.items) AS i | WHERE (i.n > 0) | SELECT p.id AS id, t.element AS tag, i.sku AS sku | INTO o print()
CREATE TABLE posts (id BIGINT, tags STRING, items ARRAY<ROW<sku STRING, n INT>>) WITH ('connector' = 'kafka', 'topic' = 'posts', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE o (id BIGINT, tag STRING, sku STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT p.id, t.tag, i.sku FROM posts AS p CROSS JOIN UNNEST(SPLIT(p.tags, ',')) AS t (tag) CROSS JOIN UNNEST(p.items) AS i (sku, n) WHERE i.n > 0;
