-- warning: Option "scan.startup.mode" of table "o" has no effect: a compacted topic is read from its beginning.
-- with: s_event_time … count_minutes
CREATE TABLE o (at TIMESTAMP(3), k BIGINT, x BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json', 'scan.startup.mode' = 'earliest-offset');
