-- error: a table name has no qualifier here
-- fixed: db.t => t
CREATE TABLE db.t (a INT) WITH ('connector' = 'print');
