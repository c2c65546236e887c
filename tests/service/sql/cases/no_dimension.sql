-- plan: FROM s AS s kafka(s @ broker:9092, earliest-offset) [k BIGINT, n INT, t STRING, p = PROCTIME()] | WHERE (s.n > 3) | SELECT s.k AS x, UPPER(s.t) AS y | INTO o blackhole()
-- with: s_plain out_bigint_string
INSERT INTO o SELECT k, UPPER(t) FROM s WHERE n > 3;
