-- plan: FROM s AS s kafka(s @ broker:9092, security.protocol=SSL, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.location' = '/etc/pem/ca.pem',
    'properties.ssl.keystore.location' = '/etc/pem/own.pem'
);
