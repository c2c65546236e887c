-- error: leaves out rows of a dimension
-- fixed: 'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1700000000000' => 'scan.startup.mode' = 'earliest-offset'
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '1700000000000'
);
