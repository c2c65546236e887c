-- error: column "id" is ambiguous
-- fixed: WHERE id = k => WHERE a.id = k
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, a.name FROM s, LATERAL TABLE(d(s.p)) AS a, LATERAL TABLE(d(s.p)) AS b WHERE id = k AND b.id = s.n;
