-- plan: SELECT (window_start + INTERVAL '1' SECOND) AS at, a0 AS x
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT window_start, window_end, window_start + INTERVAL '1' SECOND AS next FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT next, COUNT(*) FROM w GROUP BY window_start, window_end;
