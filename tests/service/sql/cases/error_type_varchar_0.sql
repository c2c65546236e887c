-- error: a length is 0
CREATE TABLE t (a VARCHAR(0)) WITH ('connector' = 'print');
