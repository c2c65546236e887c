-- error: to which rows are only appended
-- fixed: 'connector' = 'kafka', 'format' = 'json' => 'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'
-- fixed: y STRING) => y STRING, PRIMARY KEY (x) NOT ENFORCED)
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'kafka', 'format' = 'json', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092');
INSERT INTO o SELECT k, t FROM s;
