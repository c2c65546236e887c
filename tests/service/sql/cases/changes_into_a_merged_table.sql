-- plan: INTO o delta(/lake/o, merged by id, source) NOT NULL id, source
-- with: d_small
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, source STRING, name STRING, PRIMARY KEY (id, source) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = '/lake/o');
INSERT INTO o SELECT s.k, 'here', d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.n = d.id WHERE s.n > 1;
