-- error: has a history, and its records are changes of rows
-- fixed: , 'history.connector' = 'delta', 'history.path' = '/lake/old' => 
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json', 'history.connector' = 'delta', 'history.path' = '/lake/old'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT k, t FROM s;
