-- error: column "t" is TIMESTAMP_LTZ(3), and with timestamp_mapping.legacy Avro has only TIMESTAMP(3)
-- fixed: 'format' = 'avro' => 'format' = 'avro', 'avro.timestamp_mapping.legacy' = 'false'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, t TIMESTAMP_LTZ(3), p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro'
);
