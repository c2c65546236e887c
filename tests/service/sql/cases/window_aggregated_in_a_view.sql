-- plan: HAVING ((a0 > 1:BIGINT) AND (a0 < 9:BIGINT)) | SELECT window_start AS at, (a0 + 1:BIGINT) AS x
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT window_start AS at, COUNT(*) AS found FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end HAVING COUNT(*) > 1;
INSERT INTO o SELECT at, found + 1 FROM w WHERE found < 9;
