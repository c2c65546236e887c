-- error: a precision is 39
CREATE TABLE t (a DECIMAL(39, 2)) WITH ('connector' = 'print');
