-- error: which is no column of the key of "s"
-- fixed: CAST(k AS INT) => k
-- fixed: x INT => x BIGINT
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x INT, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT CAST(k AS INT) FROM s;
