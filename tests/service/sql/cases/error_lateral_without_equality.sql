-- error: WHERE has no equality between "d"
-- fixed: s.n > 1 => s.n > 1 AND s.k = d.id
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, LATERAL TABLE(d(s.p)) AS d WHERE s.n > 1;
