-- error: option "properties.sasl.password" has no effect with OAUTHBEARER
-- fixed: 'OAUTHBEARER' => 'SCRAM-SHA-512', 'properties.sasl.username' = 'u'
-- fixed: 'properties.sasl.oauthbearer.token.endpoint.url' = 'http://h/t', =>
-- fixed: 'properties.sasl.oauthbearer.client.credentials.client.id' = 'i', =>
-- fixed: 'properties.sasl.oauthbearer.client.credentials.client.secret' = 's', =>
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.mechanism' = 'OAUTHBEARER', 'properties.sasl.oauthbearer.token.endpoint.url' = 'http://h/t', 'properties.sasl.oauthbearer.client.credentials.client.id' = 'i', 'properties.sasl.oauthbearer.client.credentials.client.secret' = 's', 'properties.sasl.password' = '${secret:x}'
);
