-- error: Did you mean "BIGINT"?
CREATE TABLE t (a BIGNIT) WITH ('connector' = 'print');
