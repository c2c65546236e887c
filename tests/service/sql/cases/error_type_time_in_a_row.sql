-- error: TIME inside of a nested type
-- fixed: TIME(3) => STRING
CREATE TABLE t (a ROW<x TIME(3)>) WITH ('connector' = 'print');
