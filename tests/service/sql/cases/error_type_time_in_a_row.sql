-- error: TIME inside of a nested type
CREATE TABLE t (a ROW<x TIME(3)>) WITH ('connector' = 'print');
