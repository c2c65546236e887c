-- error: not the stream's PROCTIME() column
-- fixed: d(s.n) => d(s.p)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, LATERAL TABLE(d(s.n)) AS d WHERE s.k = d.id;
