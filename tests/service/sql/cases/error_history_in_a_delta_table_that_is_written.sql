-- error: table "d" is both joined and written by the same job
-- fixed: 'connector' = 'delta', 'path' = 'lake/users' => 'connector' = 'delta', 'path' = 'lake/named'
-- with: s_plain … join_name
CREATE TABLE d (id BIGINT, name STRING, at TIMESTAMP_LTZ(3), PRIMARY KEY (id) NOT ENFORCED) WITH (
    'connector' = 'upsert-kafka', 'topic' = 'users', 'properties.bootstrap.servers' = 'broker:9092', 'key.format' = 'json', 'value.format' = 'json',
    'history.connector' = 'delta', 'history.path' = 'lake/users'
);
CREATE TABLE o (x BIGINT, y STRING) WITH ('connector' = 'delta', 'path' = 'lake/users');
