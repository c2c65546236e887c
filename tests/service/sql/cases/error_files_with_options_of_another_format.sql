-- error: option "csv.null-literal" has no meaning for files of format json
-- fixed: 'format' = 'json', 'csv => 'format' = 'csv', 'csv
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'json', 'csv.null-literal' = '-');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
