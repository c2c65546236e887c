-- error: expected "<", found "<>"
-- fixed: ROW<> => ROW<x INT>
CREATE TABLE t (a ROW<>) WITH ('connector' = 'print');
