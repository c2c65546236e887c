-- error: format debezium-avro-confluent cannot be written
-- fixed: 'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r:1' => 'format' = 'debezium-json'
CREATE TABLE s (k BIGINT, n INT, amount DECIMAL(8, 3), t STRING, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://r:1');
SET 'table.exec.emit.allow-lateness' = '1 min';
INSERT INTO o SELECT window_start, k, COUNT(*)
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, k;
