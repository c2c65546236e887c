-- error: a column of type INTERVAL DAY TO SECOND
-- fixed: INTERVAL DAY => BIGINT
CREATE TABLE t (a INTERVAL DAY) WITH ('connector' = 'print');
