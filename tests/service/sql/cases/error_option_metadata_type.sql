-- error: metadata "offset" is BIGINT, not STRING
-- fixed: o STRING METADATA => o BIGINT METADATA
-- with: d_small
CREATE TABLE s (k BIGINT, o STRING METADATA FROM 'offset', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
