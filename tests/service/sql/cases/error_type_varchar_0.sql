-- error: a length is 0
-- fixed: VARCHAR(0) => VARCHAR(1)
CREATE TABLE t (a VARCHAR(0)) WITH ('connector' = 'print');
