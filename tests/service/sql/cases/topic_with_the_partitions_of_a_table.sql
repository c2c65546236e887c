-- plan: INNER JOIN d AS d debezium-json(shop.shop.d @ broker:9092) [id BIGINT NOT NULL, name STRING; key id] ON s.k = d.id
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'shop.shop.d', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'debezium-json.source.table-pattern' = 'd_[0-9]+', 'debezium-json.source.schema' = 'public', 'debezium-json.unsent.values' = 'last-version'
);
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
