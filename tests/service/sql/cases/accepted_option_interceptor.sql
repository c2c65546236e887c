-- warning: Option "properties.interceptor.classes" of table "s" has no effect: it configures the Java client.
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.client.id' = 'c', 'properties.interceptor.classes' = 'x'
);
