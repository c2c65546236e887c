-- error: raw has one column, not 2: k, id
-- fixed: id STRING, => 
-- with: d_small
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'raw'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
