-- error: Did you mean "BIGINT"?
-- fixed: BIGNIT => BIGINT
CREATE TABLE t (a BIGNIT) WITH ('connector' = 'print');
