-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.client.id' = 'sluice-etl',
    'properties.fetch.max.bytes' = '1048576', 'properties.max.partition.fetch.bytes' = '65536',
    'properties.connections.max.idle.ms' = '60000', 'properties.metadata.max.age.ms' = '60000',
    'properties.reconnect.backoff.ms' = '50', 'properties.reconnect.backoff.max.ms' = '1000',
    'properties.retry.backoff.ms' = '100', 'properties.receive.buffer.bytes' = '65536',
    'properties.send.buffer.bytes' = '65536'
);
