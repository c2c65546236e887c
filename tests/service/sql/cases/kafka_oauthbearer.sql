-- plan: FROM s AS s kafka(s @ broker:9092, sasl.mechanism=OAUTHBEARER, security.protocol=SASL_SSL, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.security.protocol' = 'SASL_SSL',
    'properties.sasl.mechanism' = 'OAUTHBEARER', 'properties.sasl.oauthbearer.scope' = 'kafka',
    'properties.sasl.oauthbearer.token.endpoint.url' = 'https://login.internal/realms/x/token',
    'properties.sasl.oauthbearer.client.credentials.client.id' = '${secret:id}',
    'properties.sasl.oauthbearer.client.credentials.client.secret' = '${secret:word}'
);
