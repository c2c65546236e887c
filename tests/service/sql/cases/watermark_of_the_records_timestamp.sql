-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '1' SECOND) | WAIT until the watermark of s has reached the record's time
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
