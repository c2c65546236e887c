-- error: a column of type TIMESTAMP(9)
-- fixed: TIMESTAMP(9) => TIMESTAMP(6)
CREATE TABLE t (a TIMESTAMP(9)) WITH ('connector' = 'print');
