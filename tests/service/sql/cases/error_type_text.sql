-- error: expected a type, found "TEXT"
-- fixed: TEXT => STRING
CREATE TABLE t (a TEXT) WITH ('connector' = 'print');
