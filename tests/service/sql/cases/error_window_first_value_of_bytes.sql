-- error: FIRST_VALUE takes a number, a text, a time or BOOLEAN, not BYTES
-- fixed: FIRST_VALUE(b) => FIRST_VALUE(CAST(b AS STRING))
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, b BYTES, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT FIRST_VALUE(b)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
