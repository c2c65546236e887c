-- plan: INSERT 1 | FROM a AS a kafka(a @ broker:9092, specific-offsets, a/0:5, a/1:7) [id BIGINT] | INSERT 2 | FROM b AS b kafka(b; c @ broker:9092, specific-offsets, b/0:9, c/0:9) [id BIGINT]
CREATE TABLE a (id BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:5;partition:1,offset:7'
);
CREATE TABLE b (id BIGINT) WITH (
    'connector' = 'kafka', 'topic' = 'b;c', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'specific-offsets', 'scan.startup.specific-offsets' = 'partition:0,offset:9'
);
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o (id) SELECT id FROM a UNION ALL SELECT id FROM b;
