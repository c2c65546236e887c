-- plan: SELECT s.k AS k, s.n AS n, s.t AS t, s.p AS p | INTO preview print(, 100 rows)
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SELECT * FROM s;
