-- error: expected a type, found "TEXT"
CREATE TABLE t (a TEXT) WITH ('connector' = 'print');
