-- error: GROUP BY takes no ARRAY
-- fixed: window_end, tags => window_end, tags[1]
CREATE TABLE s (payload ROW<id BIGINT, ts TIMESTAMP(3)>, tags ARRAY<STRING>, ts AS payload.ts,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (a TIMESTAMP(3), b BIGINT, c BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, 1, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, tags;
