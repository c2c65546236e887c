-- plan: INSERT 1 | INTO k kafka(k @ broker:9092) | INSERT 2 | INTO k kafka(k @ broker:9092)
-- with: a_orders b_topic
CREATE TABLE k (x BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'k', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json'
);
INSERT INTO k SELECT id FROM a UNION ALL SELECT amount FROM b;
