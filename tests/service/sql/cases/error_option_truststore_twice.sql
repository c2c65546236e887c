-- error: both "properties.ssl.truststore.certificates" and "properties.ssl.truststore.location" are given
-- fixed: 'properties.ssl.truststore.location' = '/etc/pem/ca.pem', =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.location' = '/etc/pem/ca.pem', 'properties.ssl.truststore.certificates' = '${secret:ca}'
);
