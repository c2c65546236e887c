-- error: option "topic-pattern" is "clicks-(", which is no regular expression
-- fixed: 'clicks-(' => 'clicks-.*'
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic-pattern' = 'clicks-(', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
