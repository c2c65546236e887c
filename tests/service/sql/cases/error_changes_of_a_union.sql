-- error: does not tell which query of it has its key
-- fixed:  UNION ALL SELECT k, t FROM s WHERE n > 1 => 
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'print');
INSERT INTO o SELECT k, t FROM s UNION ALL SELECT k, t FROM s WHERE n > 1;
