-- error: a query behind LATERAL is run for each row
-- fixed: , LATERAL (SELECT * FROM d) AS d WHERE =>  JOIN LATERAL TABLE(d(s.p)) AS d ON
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, LATERAL (SELECT * FROM d) AS d WHERE s.k = d.id;
