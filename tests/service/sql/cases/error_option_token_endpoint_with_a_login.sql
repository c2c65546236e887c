-- error: expected http://host:port or https://host:port, without a login
-- fixed: u:p@ =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.mechanism' = 'OAUTHBEARER', 'properties.sasl.oauthbearer.token.endpoint.url' = 'http://u:p@h/t', 'properties.sasl.oauthbearer.client.credentials.client.id' = 'i', 'properties.sasl.oauthbearer.client.credentials.client.secret' = 's'
);
