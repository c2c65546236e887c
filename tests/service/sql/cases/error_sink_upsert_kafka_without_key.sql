-- error: table "o" of upsert-kafka has no primary key
-- fixed: x BIGINT) => x BIGINT, PRIMARY KEY (at, k) NOT ENFORCED)
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json');
