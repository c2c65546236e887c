-- error: List the columns
-- fixed:  WITH ('connector' = 'print') AS SELECT 1 =>  (a INT) WITH ('connector' = 'print')
CREATE TABLE t WITH ('connector' = 'print') AS SELECT 1;
