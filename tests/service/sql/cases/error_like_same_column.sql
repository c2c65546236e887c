-- error: column "n" is already in table "base"
-- fixed: (n INT) => (n2 INT)
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s (n INT) LIKE base;
