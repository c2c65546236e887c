-- error: expected ">"
CREATE TABLE t (a ROW<x INT) WITH ('connector' = 'print');
