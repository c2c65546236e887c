-- plan: FROM s AS s kafka(a; b.c; d_e-1 @ broker:9092, earliest-offset) [k BIGINT, t STRING METADATA topic, p = PROCTIME()]
-- with: d_small
CREATE TABLE s (k BIGINT, t STRING METADATA FROM 'topic', p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'topic' = 'a;b.c;d_e-1', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k + CHAR_LENGTH(s.t)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
