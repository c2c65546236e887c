-- error: GROUP BY takes no INTERVAL
-- fixed: INTERVAL '1' DAY * k => k
SET 'table.local-time-zone' = 'UTC';
CREATE TABLE e (k BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (
    'connector' = 'kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' DAY))
GROUP BY window_start, window_end, INTERVAL '1' DAY * k;
