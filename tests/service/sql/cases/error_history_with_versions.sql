-- error: table "rates" has WATERMARK FOR, but files keep no versions of a row
-- fixed:     WATERMARK FOR update_time AS update_time, =>
-- fixed: o.ts AS r => PROCTIME() AS r
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3),
    WATERMARK FOR update_time AS update_time,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'filesystem', 'history.path' = 'rates', 'history.format' = 'parquet'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
