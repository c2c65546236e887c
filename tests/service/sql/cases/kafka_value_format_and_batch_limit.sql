-- plan: FROM s AS s kafka(s @ a:9092,b:9093, earliest-offset, 5000 records) [k BIGINT, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'a:9092, b:9093', 'value.format' = 'json',
    'scan.startup.mode' = 'earliest-offset', 'scan.max-records-per-batch' = '5000'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
