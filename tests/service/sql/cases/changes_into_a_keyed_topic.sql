-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset, key k, changes by k) [k BIGINT NOT NULL, n INT, t STRING, items ARRAY<STRING>, p = PROCTIME()] | INTO o upsert-kafka(o @ broker:9092, key id) NOT NULL id
-- with: d_small
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON s.n = d.id;
