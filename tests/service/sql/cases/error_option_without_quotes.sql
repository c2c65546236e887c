-- error: expected a key in single quotes
CREATE TABLE t (a INT) WITH (connector = 'print');
