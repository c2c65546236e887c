-- error: type ARRAY is not supported
CREATE TABLE t (a ARRAY<INT>) WITH ('connector' = 'print');
