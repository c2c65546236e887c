-- error: column "x" of the query: a column of type INTERVAL
-- fixed: INTERVAL '1' DAY * n => CAST(INTERVAL '1' DAY * n AS STRING)
CREATE TABLE e (k BIGINT, n INT) WITH (
    'connector' = 'kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'b:9092', 'format' = 'json'
);
CREATE TABLE o WITH ('connector' = 'blackhole') AS SELECT INTERVAL '1' DAY * n AS x FROM e;
