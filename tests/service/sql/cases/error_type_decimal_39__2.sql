-- error: a precision is 39
-- fixed: 39 => 38
CREATE TABLE t (a DECIMAL(39, 2)) WITH ('connector' = 'print');
