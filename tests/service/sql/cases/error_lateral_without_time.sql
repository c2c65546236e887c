-- error: expected an expression
-- fixed: d() => d(s.p)
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, LATERAL TABLE(d()) AS d WHERE s.k = d.id;
