-- error: a scale is 5
-- fixed: 4, 5 => 4, 4
CREATE TABLE t (a DECIMAL(4, 5)) WITH ('connector' = 'print');
