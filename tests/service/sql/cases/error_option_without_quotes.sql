-- error: expected a key in single quotes
-- fixed: connector = => 'connector' =
CREATE TABLE t (a INT) WITH (connector = 'print');
