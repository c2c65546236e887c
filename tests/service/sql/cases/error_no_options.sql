-- error: expected WITH
-- fixed: (a INT) => (a INT) WITH ('connector' = 'print')
CREATE TABLE t (a INT);
