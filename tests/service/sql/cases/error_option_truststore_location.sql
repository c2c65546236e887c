-- error: has no effect with PLAINTEXT
-- fixed: 'properties.ssl => 'properties.security.protocol' = 'SSL', 'properties.ssl
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.ssl.truststore.location' = '/etc/pem/ca.pem'
);
