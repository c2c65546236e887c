-- plan: FROM s AS s kafka(topics like clicks-[a-z]+, looked for every 300000 ms @ broker:9092, earliest-offset) [k BIGINT, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-[a-z]+', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
