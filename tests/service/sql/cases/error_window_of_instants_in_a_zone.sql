-- error: a window of instants in the time zone
-- fixed: Asia/Tokyo => UTC
SET 'table.local-time-zone' = 'Asia/Tokyo';
CREATE TABLE e (k BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (
    'connector' = 'kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' DAY))
GROUP BY window_start, window_end;
