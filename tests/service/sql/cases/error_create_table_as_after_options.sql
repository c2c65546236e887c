-- error: CREATE TABLE … AS is not supported
CREATE TABLE t (a INT) WITH ('connector' = 'print') AS SELECT 1;
