-- error: PARTITIONED is not supported
-- fixed:  PARTITIONED BY (a) =>
CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'delta', 'path' = 't');
