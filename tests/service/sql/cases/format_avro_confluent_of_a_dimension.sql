-- plan: INNER JOIN d AS d avro-confluent(d @ broker:9092, key d_id of avro-confluent(schemas http://registry:8081), avro-confluent(schemas http://registry:8081)) [d_id BIGINT NOT NULL, name STRING; key d_id] ON s.k = d.d_id
CREATE TABLE d (d_id BIGINT, name STRING, PRIMARY KEY (d_id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'avro-confluent', 'value.format' = 'avro-confluent', 'value.avro-confluent.url' = 'http://registry:8081',
    'key.avro-confluent.url' = 'http://registry:8081'
);
CREATE TABLE s (k BIGINT, id STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.d_id;
