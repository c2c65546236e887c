-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, t STRING, part INT METADATA partition, up = UPPER(s.t), p = PROCTIME(), next_k = (s.k + 1:BIGINT), in_part = (s.part * 2)] | SELECT s.up AS x
-- with: d_small
CREATE TABLE s (k BIGINT, t STRING, part INT METADATA FROM 'partition', up AS UPPER(t), p AS PROCTIME(), next_k AS k + 1, in_part AS part * 2) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (x STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT up
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
