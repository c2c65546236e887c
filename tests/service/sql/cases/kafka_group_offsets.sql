-- plan: FROM s AS s kafka(s @ broker:9092, group.id=etl, group-offsets) [k BIGINT, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'group-offsets', 'properties.group.id' = 'etl',
    'properties.auto.offset.reset' = 'earliest', 'properties.commit.offsets.on.checkpoint' = 'false'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
