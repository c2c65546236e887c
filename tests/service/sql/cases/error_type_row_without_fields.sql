-- error: expected "<", found "<>"
CREATE TABLE t (a ROW<>) WITH ('connector' = 'print');
