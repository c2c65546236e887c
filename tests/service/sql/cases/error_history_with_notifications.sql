-- error: takes the place of the connector's snapshot
-- fixed: , 'snapshot.notifications.topic' = 'notices' => 
-- with: s_plain … out_bigint_string join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'debezium-json',
    'history.connector' = 'filesystem', 'history.path' = 'users', 'history.format' = 'parquet', 'snapshot.notifications.topic' = 'notices'
);
