-- error: both "properties.ssl.truststore.certificates" and "properties.ssl.truststore.location" are given
-- fixed: 'properties.ssl.truststore.location' = '/etc/pem/ca.pem', =>
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SSL', 'properties.ssl.truststore.location' = '/etc/pem/ca.pem', 'properties.ssl.truststore.certificates' = '${secret:ca}'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
