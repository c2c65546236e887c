-- error: field "x" of the ROW comes twice
CREATE TABLE t (a ROW<x INT, x STRING>) WITH ('connector' = 'print');
