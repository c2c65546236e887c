-- error: Log in by 'basic-auth.user-info', or by a certificate of ours.
-- fixed: , 'avro-confluent.bearer-auth.credentials-source' = 'STATIC_TOKEN' => , 'avro-confluent.basic-auth.credentials-source' = 'USER_INFO', 'avro-confluent.basic-auth.user-info' = 'a:b'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro-confluent', 'avro-confluent.url' = 'https://r:1', 'avro-confluent.bearer-auth.credentials-source' = 'STATIC_TOKEN'
);
