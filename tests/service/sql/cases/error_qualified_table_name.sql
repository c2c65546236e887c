-- error: a table name has no qualifier here
CREATE TABLE db.t (a INT) WITH ('connector' = 'print');
