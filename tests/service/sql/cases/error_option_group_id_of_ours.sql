-- error: expected 1 to 255 printable characters, not starting with sluice.
-- fixed: sluice.etl => etl
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.group.id' = 'sluice.etl'
);
