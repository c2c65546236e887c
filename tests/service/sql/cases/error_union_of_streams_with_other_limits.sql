-- error: table "a" and table "b" cannot be one stream: option "scan.max-records-per-batch" is "500" and not set
-- fixed: 'connector' = 'kafka', 'topic' = 'b' => 'connector' = 'kafka', 'scan.max-records-per-batch' = '500', 'topic' = 'b'
CREATE TABLE a (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.max-records-per-batch' = '500'
);
CREATE TABLE b (id BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
