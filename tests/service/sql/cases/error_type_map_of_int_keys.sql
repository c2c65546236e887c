-- error: the keys of a MAP are INT, expected STRING
CREATE TABLE t (a MAP<INT, INT>) WITH ('connector' = 'print');
