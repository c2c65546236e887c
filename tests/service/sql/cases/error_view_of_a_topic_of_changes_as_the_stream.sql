-- error: table "d" has format debezium-json, which cannot be read
-- with: out_bigint
CREATE TABLE d (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'd', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json'
);
CREATE VIEW v AS SELECT id FROM d WHERE name <> 'x';
INSERT INTO o SELECT id FROM v;
