-- plan: INNER JOIN d AS d filesystem(d, csv, read once) [id BIGINT, name STRING; no key] ON s.k = d.id
CREATE TABLE d (id BIGINT, name STRING) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'csv', 'csv.field-delimiter' = ';', 'csv.null-literal' = '', 'csv.array-element-delimiter' = '|');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
