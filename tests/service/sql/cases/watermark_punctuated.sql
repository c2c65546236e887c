-- plan: WATERMARK s.ts AS CASE WHEN (s.t = 'tick') THEN s.ts END
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS CASE WHEN t = 'tick' THEN ts END) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
