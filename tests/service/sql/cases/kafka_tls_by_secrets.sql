-- plan: FROM s AS s kafka(s @ broker:9092, security.protocol=SSL, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.type' = 'PEM',
    'properties.ssl.truststore.certificates' = '${secret:ca}',
    'properties.ssl.keystore.type' = 'PEM', 'properties.ssl.keystore.certificate.chain' = '${secret:cert}',
    'properties.ssl.keystore.key' = '${secret:key}', 'properties.ssl.key.password' = '${secret:phrase}',
    'properties.ssl.endpoint.identification.algorithm' = ''
);
