-- plan: INNER JOIN d AS d csv(d @ broker:9092, key d_id of csv, csv(field-delimiter |)) [d_id BIGINT NOT NULL, name STRING; key d_id] ON s.k = d.d_id
CREATE TABLE d (d_id BIGINT, name STRING, PRIMARY KEY (d_id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'csv', 'value.format' = 'csv', 'value.csv.field-delimiter' = '|'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'csv'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.d_id;
