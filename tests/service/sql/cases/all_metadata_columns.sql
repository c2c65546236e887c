-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, topic STRING METADATA topic, part INT METADATA partition, offset BIGINT METADATA offset, at_ TIMESTAMP_LTZ(3) METADATA timestamp, p = PROCTIME()] | SELECT s.offset AS x
-- with: d_small
CREATE TABLE s (k BIGINT, topic STRING METADATA VIRTUAL, part INT METADATA FROM 'partition' VIRTUAL,
    `offset` BIGINT METADATA, at_ TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.`offset`
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
