-- error: CREATE OR REPLACE is not supported
CREATE OR REPLACE TABLE t (a INT) WITH ('connector' = 'print');
