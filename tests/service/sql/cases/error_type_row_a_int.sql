-- error: type ROW is not supported
CREATE TABLE t (a ROW<a INT>) WITH ('connector' = 'print');
