-- plan: INTO o upsert-kafka(o @ broker:9092, key x) NOT NULL x
-- with: d_since s_event_time
CREATE TABLE o (x BIGINT, y STRING, PRIMARY KEY (x) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'o', 'properties.bootstrap.servers' = 'broker:9092',
    'key.format' = 'json', 'value.format' = 'json');
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
