-- error: columns "n" and "N" differ only in case, which Delta ignores
-- fixed: N BIGINT) => m BIGINT)
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (n BIGINT, N BIGINT) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, s.k FROM s;
