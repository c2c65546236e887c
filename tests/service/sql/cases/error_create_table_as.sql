-- error: List the columns
CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1;
