-- error: UNNEST makes several rows of one key
-- fixed: s.k, i.item => s.k, CAST(s.items AS STRING)
-- fixed:  CROSS JOIN UNNEST(s.items) AS i (item) =>
-- fixed: o (x BIGINT, y STRING) WITH ('connector' = 'print') => o (x BIGINT PRIMARY KEY NOT ENFORCED, y STRING) WITH ('connector' = 'print')
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT s.k, i.item FROM s CROSS JOIN UNNEST(s.items) AS i (item);
