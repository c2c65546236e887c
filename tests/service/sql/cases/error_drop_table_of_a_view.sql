-- error: "v" is a view
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE VIEW v AS SELECT k FROM s;
DROP TABLE v;
