-- error: column "t" is TIME(6), and Avro counts milliseconds here
-- fixed: TIME(6) => TIME(3)
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, t TIME(6), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro'
);
