-- error: table "s" has format debezium-json, which cannot be read
-- fixed: 'format' = 'debezium-json' => 'format' = 'json'
-- with: d_small out_bigint … join_k
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:9092', 'topic' = 's', 'format' = 'debezium-json',
    'scan.startup.mode' = 'earliest-offset'
);
