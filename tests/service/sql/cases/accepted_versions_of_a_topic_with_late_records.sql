-- warning: Option "late-records.path" of table "rates" has no effect on a dimension.
-- with: orders_of_instants … join_rates
CREATE TABLE rates (
    currency STRING, conversion_rate DECIMAL(32, 2), update_time TIMESTAMP_LTZ(3),
    WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND,
    PRIMARY KEY (currency) NOT ENFORCED
) WITH (
    'topic' = 'rates', 'properties.bootstrap.servers' = 'broker:9092',
    'connector' = 'kafka', 'format' = 'json', 'late-records.path' = 'late'
);
CREATE TABLE o (id BIGINT, name STRING, rate DECIMAL(32, 2)) WITH ('connector' = 'blackhole');
