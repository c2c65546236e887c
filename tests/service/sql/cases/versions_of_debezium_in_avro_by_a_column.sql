-- plan: WATERMARK o.ts AS (o.ts - INTERVAL '5' SECOND) | WATERMARK rates.update_time AS (update_time - INTERVAL '15' SECOND) | LEFT JOIN rates AS r debezium-avro-confluent(rates @ broker:9092, schemas http://registry:8081) [currency STRING NOT NULL, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3); key currency] ON o.currency = r.currency AS OF o.ts | WAIT until the watermark of o and rates has reached the record's time
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3),
    WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'kafka', 'format' = 'debezium-avro-confluent',
    'debezium-avro-confluent.url' = 'http://registry:8081'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
