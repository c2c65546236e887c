-- error: nested data is read as STRING only where the producer writes it as text
CREATE TABLE t (a ROW<b INT, c ROW<d STRING>>) WITH ('connector' = 'print');
