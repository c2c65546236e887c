-- error: a window cannot take back a row that it has counted
CREATE TABLE s (k BIGINT, n INT, t STRING, items ARRAY<STRING>, p AS PROCTIME(), PRIMARY KEY (k) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'print');
INSERT INTO o SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(p), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
