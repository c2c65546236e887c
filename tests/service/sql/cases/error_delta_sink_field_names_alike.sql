-- error: columns "r.x[].n" and "r.x[].N" differ only in case
-- fixed: N INT>>> => m INT>>>
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, r ROW<x ARRAY<ROW<n INT, N INT>>>) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o (k) SELECT s.k FROM s;
