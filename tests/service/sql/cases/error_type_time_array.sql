-- error: TIME inside of a nested type
-- fixed: TIME(3) ARRAY => STRING ARRAY
CREATE TABLE t (a TIME(3) ARRAY) WITH ('connector' = 'print');
