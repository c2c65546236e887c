-- plan: FROM s AS w kafka(s @ broker:9092, latest-offset) [k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p = PROCTIME()] | SELECT window_start AS at, k0 AS x
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT w.window_start, w.k
FROM TABLE(TUMBLE(TABLE s /*+ OPTIONS('scan.startup.mode' = 'latest-offset') */, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) AS w GROUP BY w.window_start, w.window_end, w.k;
