-- error: unknown metadata key "header"
-- fixed: h STRING METADATA FROM 'header' => h MAP<STRING, BYTES> METADATA FROM 'headers'
-- with: d_small
CREATE TABLE s (k BIGINT, h STRING METADATA FROM 'header', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
