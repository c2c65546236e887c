-- plan: WATERMARK rates.update_time AS (TO_TIMESTAMP_LTZ(updated, 3) - INTERVAL '15' SECOND) | LEFT JOIN rates AS r json(rates @ broker:9092) [currency STRING NOT NULL, conversion_rate DECIMAL(32, 2), updated BIGINT, update_time TIMESTAMP_LTZ(3) AS TO_TIMESTAMP_LTZ(updated, 3); key currency] ON o.currency = r.currency AS OF o.ts
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), updated BIGINT, update_time AS TO_TIMESTAMP_LTZ(updated, 3),
    WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
