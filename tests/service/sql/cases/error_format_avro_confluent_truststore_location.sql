-- error: Give PEM texts as secrets, by the options ssl.truststore.certificates
-- fixed: 'avro-confluent.ssl.truststore.location' = '/etc/ca.jks' => 'avro-confluent.ssl.truststore.certificates' = '${secret:ca}'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'avro-confluent', 'avro-confluent.url' = 'https://r:1', 'avro-confluent.ssl.truststore.location' = '/etc/ca.jks'
);
