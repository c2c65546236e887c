-- error: has no effect with PLAINTEXT
-- fixed: 'PLAIN' => 'PLAIN', 'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.username' = 'u', 'properties.sasl.password' = '${secret:x}'
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.sasl.mechanism' = 'PLAIN'
);
