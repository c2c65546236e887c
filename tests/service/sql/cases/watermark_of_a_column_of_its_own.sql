-- plan: WATERMARK s.ts AS s.wm
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, wm TIMESTAMP(3), ts TIMESTAMP(3), WATERMARK FOR ts AS wm) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
