-- error: reads the clock, which is not allowed for a dimension
-- fixed: AS CURRENT_TIMESTAMP => AS update_time - INTERVAL '15' SECOND
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3),
    WATERMARK FOR update_time AS CURRENT_TIMESTAMP,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
