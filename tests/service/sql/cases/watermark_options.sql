-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '5' SECOND), on-event, idle after 10000 ms, at most 3600000 ms ahead of the clock | LATE records INTO late/s
-- with: d_versions … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset',
    'scan.watermark.emit.strategy' = 'on-event', 'scan.watermark.idle-timeout' = '10 s',
    'scan.watermark.max-future' = '1 h', 'late-records.path' = 'late/s'
);
