-- error: expected host:port
-- fixed: = 'b', => = 'b:9092',
-- with: d_small
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b', 'topic' = 's', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
