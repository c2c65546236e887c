-- error: takes a column of the stream
-- fixed: d(CURRENT_TIMESTAMP) => d(s.p)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, LATERAL TABLE(d(CURRENT_TIMESTAMP)) AS d WHERE s.k = d.id;
