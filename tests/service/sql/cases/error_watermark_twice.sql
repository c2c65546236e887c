-- error: a second WATERMARK FOR
-- fixed: , WATERMARK FOR ts AS ts) => )
-- with: d_since … out_bigint_string join_name_of_time
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts, WATERMARK FOR ts AS ts) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
