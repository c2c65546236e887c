-- error: column "late" is neither in GROUP BY nor in an aggregate
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), x BOOLEAN) WITH ('connector' = 'blackhole');
CREATE VIEW w AS SELECT window_start, window_end, ts > window_start AS late FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE));
INSERT INTO o SELECT window_start, late FROM w GROUP BY window_start, window_end;
