-- plan: INTO o upsert-kafka(o @ broker:9092, key x) NOT NULL x
-- with: d_since s_event_time … join_name
CREATE TABLE o (x BIGINT, y STRING, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json');
