-- plan: WINDOW CUMULATE of the clock, size 600000 ms, step 120000 ms
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT window_start, COUNT(*)
FROM CUMULATE(DATA => TABLE s, TIMECOL => DESCRIPTOR(p), STEP => INTERVAL '2' MINUTES, SIZE => INTERVAL '10' MINUTES)
GROUP BY window_start, window_end, k;
