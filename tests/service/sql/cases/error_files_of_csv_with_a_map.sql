-- error: column "m" is MAP<STRING, BIGINT>, which no cell of csv can be
-- fixed: 'csv' => 'json'
CREATE TABLE d (id BIGINT, m MAP<STRING, BIGINT>) WITH ('connector' = 'filesystem', 'path' = 'd', 'format' = 'csv');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
