-- error: field "x" of the ROW is declared twice
-- fixed: x STRING => y STRING
CREATE TABLE t (a ROW<x INT, x STRING>) WITH ('connector' = 'print');
