-- error: TIME inside of a nested type
CREATE TABLE t (a TIME(3) ARRAY) WITH ('connector' = 'print');
