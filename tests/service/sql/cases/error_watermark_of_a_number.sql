-- error: the time column "k" is BIGINT, expected TIMESTAMP
-- fixed: WATERMARK FOR k AS k - 5 => at AS TO_TIMESTAMP_LTZ(k, 3), WATERMARK FOR at AS at
-- fixed: OF s.ts => OF s.at
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR k AS k - 5) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
