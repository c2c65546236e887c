-- plan: SELECT s.interval AS x
-- with: d_since
CREATE TABLE s (k BIGINT, interval INT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT interval FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
