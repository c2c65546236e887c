-- error: TIMESTAMP WITH TIME ZONE is not supported
CREATE TABLE t (a TIMESTAMP WITH TIME ZONE) WITH ('connector' = 'print');
