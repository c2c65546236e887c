-- error: expected WITH
CREATE TABLE t (a INT);
