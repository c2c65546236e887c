-- error: a scale is 5
CREATE TABLE t (a DECIMAL(4, 5)) WITH ('connector' = 'print');
