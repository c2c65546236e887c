-- error: table "a" and table "b" cannot be one stream: option "scan.startup.specific-offsets" differs, and both read topic "t"
-- fixed: partition:0,offset:9 => partition:0,offset:5
CREATE TABLE a (id BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:5'
);
CREATE TABLE b (id BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 's;t', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:9'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
