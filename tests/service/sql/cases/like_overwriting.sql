-- plan: FROM s AS s kafka(base @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, at TIMESTAMP_LTZ(3) METADATA timestamp, p = PROCTIME()]
-- with: d_price out_bigint_string … join_name
CREATE TABLE base (k BIGINT, n INT, t STRING, at TIMESTAMP(3) METADATA FROM 'timestamp', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s (at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', p AS PROCTIME()) LIKE base (INCLUDING ALL OVERWRITING GENERATED OVERWRITING METADATA INCLUDING PARTITIONS);
