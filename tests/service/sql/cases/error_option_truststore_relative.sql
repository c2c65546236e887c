-- error: expected an absolute path in a directory of SLUICE_ALLOWED_PEM_PATHS
-- fixed: 'ca.pem' => '/etc/pem/ca.pem'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.location' = 'ca.pem'
);
