-- plan: INTO o print(x)
-- with: d_price s_plain
CREATE TABLE o (x BIGINT) WITH ('connector' = 'print');
INSERT INTO o /*+ OPTIONS('print-identifier' = 'x') */ SELECT s.k FROM s, LATERAL TABLE(d /*+ OPTIONS('table-name' = 'e') */ (s.p)) AS d WHERE d.id = s.k;
