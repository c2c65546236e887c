-- error: option "key.avro-confluent.ssl.truststore.certificates" has no effect with an http address
-- fixed: 'key.avro-confluent.url' = 'http: => 'key.avro-confluent.url' = 'https:
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'key.format' = 'avro-confluent', 'key.fields' = 'k', 'key.avro-confluent.url' = 'http://registry:8081',
    'key.avro-confluent.ssl.truststore.certificates' = '${secret:ca}'
);
