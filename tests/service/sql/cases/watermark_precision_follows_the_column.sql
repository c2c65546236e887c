-- plan: WATERMARK s.ts AS CAST(CAST((s.ts - INTERVAL '0.5' SECOND) AS TIMESTAMP(6)) AS TIMESTAMP(3))
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS CAST(ts - INTERVAL '0.5' SECOND AS TIMESTAMP(6))) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
