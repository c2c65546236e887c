-- plan: WINDOW TUMBLE of s.ts, size 60000 ms | SELECT CAST(window_start AS TIMESTAMP(3)) AS at, window_time AS x
CREATE TABLE s (k BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x TIMESTAMP_LTZ(3)) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, window_time
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, window_time;
