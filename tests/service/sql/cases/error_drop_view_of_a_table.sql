-- error: "s" is a table
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
DROP VIEW s;
