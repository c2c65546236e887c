-- error: Did you mean "CREATE"?
-- fixed: CREAT TABLE => CREATE TABLE
CREAT TABLE x (a INT) WITH ('connector' = 'print');
