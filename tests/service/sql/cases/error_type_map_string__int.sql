-- error: type MAP is not supported
CREATE TABLE t (a MAP<STRING, INT>) WITH ('connector' = 'print');
