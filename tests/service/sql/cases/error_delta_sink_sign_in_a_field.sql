-- error: column "m[].x=y" has '=' in its name
-- fixed: `x=y` => xy
CREATE TABLE s (k BIGINT, p AS PROCTIME()) WITH (
    'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json',
    'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE o (k BIGINT, m MAP<STRING, ROW<`x=y` INT>>) WITH ('connector' = 'delta', 'path' = 'o');
INSERT INTO o (k) SELECT s.k FROM s;
