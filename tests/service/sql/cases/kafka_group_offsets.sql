-- plan: FROM s AS s kafka(s @ broker:9092, group.id=etl, group-offsets) [k BIGINT, p = PROCTIME()]
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'group-offsets', 'properties.group.id' = 'etl',
    'properties.auto.offset.reset' = 'earliest', 'properties.commit.offsets.on.checkpoint' = 'false'
);
