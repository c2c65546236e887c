-- error: the query joins no dimension
-- fixed: FROM s; => FROM s JOIN dim FOR SYSTEM_TIME AS OF s.p ON s.k = dim.id;
-- fixed: SELECT * => CREATE TABLE dim (id BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd'); SELECT *
CREATE TABLE s (k BIGINT, n INT, t STRING, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092',
    'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
SELECT * FROM s;
