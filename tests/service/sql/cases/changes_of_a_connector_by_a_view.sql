-- plan: FROM d AS d kafka(d @ broker:9092, earliest-offset, debezium-json, changes by id) [id BIGINT NOT NULL, name STRING] | INTO o upsert-kafka(o @ broker:9092, key id) NOT NULL id
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o',
    'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json');
CREATE VIEW v AS SELECT CAST(id AS STRING) AS shown FROM d WHERE name <> 'x';
INSERT INTO o SELECT shown FROM v;
