-- error: table "s" has format debezium-json, which cannot be read
-- fixed: 'format' = 'debezium-json' => 'format' = 'json'
-- with: d_small out_bigint
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 's', 'format' = 'debezium-json',
    'scan.startup.mode' = 'earliest-offset'
);
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
