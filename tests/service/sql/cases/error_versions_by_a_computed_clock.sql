-- error: the time column "update_time" of table "rates" reads the clock
-- fixed: update_time AS CURRENT_TIMESTAMP => update_time AS TO_TIMESTAMP_LTZ(updated, 3)
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), updated BIGINT, update_time AS CURRENT_TIMESTAMP,
    WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
