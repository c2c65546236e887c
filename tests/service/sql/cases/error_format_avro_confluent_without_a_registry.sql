-- error: option "avro-confluent.url" is missing
-- fixed: 'format' = 'avro-confluent' => 'format' = 'avro-confluent', 'avro-confluent.url' = 'http://registry:8081'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro-confluent'
);
