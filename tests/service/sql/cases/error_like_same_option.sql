-- error: option "topic" is already in table "base"
-- fixed: (INCLUDING ALL) => (OVERWRITING OPTIONS)
CREATE TABLE base (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE s WITH ('topic' = 'x') LIKE base (INCLUDING ALL);
