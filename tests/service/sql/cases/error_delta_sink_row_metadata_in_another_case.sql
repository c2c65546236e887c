-- error: column name "_Topic" is reserved for the row metadata
-- fixed: _Topic BIGINT => topic BIGINT
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, _Topic BIGINT) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, s.k FROM s;
