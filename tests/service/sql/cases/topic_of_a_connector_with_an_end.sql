-- plan: INNER JOIN d AS d debezium-json(d @ broker:9092, until timestamp 5 ms) [id BIGINT NOT NULL; key id] ON s.k = d.id
CREATE TABLE d (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json', 'scan.bounded.mode' = 'timestamp', 'scan.bounded.timestamp-millis' = '5');
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
