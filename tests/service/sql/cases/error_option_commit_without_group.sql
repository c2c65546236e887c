-- error: option "properties.commit.offsets.on.checkpoint" needs "properties.group.id"
-- fixed: 'properties.commit => 'properties.group.id' = 'etl', 'properties.commit
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'properties.commit.offsets.on.checkpoint' = 'false'
);
