-- error: CREATE OR REPLACE is not supported
-- fixed: CREATE OR REPLACE TABLE => CREATE TABLE
CREATE OR REPLACE TABLE t (a INT) WITH ('connector' = 'print');
