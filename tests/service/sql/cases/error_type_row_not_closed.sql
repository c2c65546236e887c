-- error: expected ">"
-- fixed: x INT) => x INT>)
CREATE TABLE t (a ROW<x INT) WITH ('connector' = 'print');
