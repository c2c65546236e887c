-- error: column "a b" has ' ' in its name, which Delta does not allow
-- fixed: `a b` => ab
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (`a b` BIGINT, c BIGINT) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, s.k FROM s;
