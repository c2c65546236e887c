-- error: number of fractional digits is 9
CREATE TABLE t (a TIMESTAMP(9)) WITH ('connector' = 'print');
