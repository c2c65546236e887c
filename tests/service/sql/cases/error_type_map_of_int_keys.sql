-- error: the keys of a MAP are INT, expected STRING
-- fixed: MAP<INT, INT> => MAP<STRING, INT>
CREATE TABLE t (a MAP<INT, INT>) WITH ('connector' = 'print');
