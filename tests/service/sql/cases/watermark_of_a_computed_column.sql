-- plan: WATERMARK s.ts AS (s.ts - INTERVAL '90' SECOND)
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, ms BIGINT, ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - INTERVAL '1:30' MINUTE TO SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
