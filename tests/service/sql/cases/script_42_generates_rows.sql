-- plan: WINDOW TUMBLE of the clock, size 10000 ms | GROUP BY window_start, window_end, gen.k AS k0 | AGGREGATE COUNT(*):BIGINT AS a0 | SELECT k0 AS k, a0 AS n | INTO shown print()
CREATE TABLE gen (id BIGINT, k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '10', 'fields.k.min' = '1', 'fields.k.max' = '5');
CREATE TABLE shown (k INT, n BIGINT) WITH ('connector' = 'print');
INSERT INTO shown SELECT k, COUNT(*) FROM gen GROUP BY k, TUMBLE(p, INTERVAL '10' SECONDS);
