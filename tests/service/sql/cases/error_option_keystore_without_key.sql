-- error: option "properties.ssl.keystore.certificate.chain" needs "properties.ssl.keystore.key"
-- fixed: '${secret:cert}' => '${secret:cert}', 'properties.ssl.keystore.key' = '${secret:key}'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.keystore.certificate.chain' = '${secret:cert}'
);
