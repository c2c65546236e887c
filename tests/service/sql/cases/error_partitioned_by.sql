-- error: PARTITIONED is not supported
CREATE TABLE t (a INT) PARTITIONED BY (a) WITH ('connector' = 'delta', 'path' = 't');
