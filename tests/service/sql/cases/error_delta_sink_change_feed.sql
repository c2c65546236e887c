-- error: column name "_change_type" is reserved for the change data feed
-- fixed: _change_type BIGINT => change_type BIGINT
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, _change_type BIGINT) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o SELECT s.k, s.k FROM s;
