-- error: metadata "value.source.timestamp" exists only in Debezium formats, and the format is json
-- fixed: 'value.source.timestamp' => 'timestamp'
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3) METADATA FROM 'value.source.timestamp' VIRTUAL,
    WATERMARK FOR update_time AS update_time,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
