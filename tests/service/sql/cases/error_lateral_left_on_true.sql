-- error: ON has no equality between "d"
-- fixed: ON TRUE WHERE s.k = d.id => ON s.k = d.id
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s LEFT JOIN LATERAL TABLE(d(s.p)) AS d ON TRUE WHERE s.k = d.id;
