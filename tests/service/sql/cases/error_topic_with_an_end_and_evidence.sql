-- error: option "snapshot.settle-time" has no effect on a table with an end
-- fixed: , 'scan.bounded.mode' = 'latest-offset' =>
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'snapshot.settle-time' = '1 s', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
