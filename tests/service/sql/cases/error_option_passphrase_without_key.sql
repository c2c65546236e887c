-- error: option "properties.ssl.key.password" needs "properties.ssl.keystore.key"
-- fixed: '${secret:phrase}' => '${secret:phrase}', 'properties.ssl.keystore.location' = '/etc/pem/own.pem'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.key.password' = '${secret:phrase}'
);
