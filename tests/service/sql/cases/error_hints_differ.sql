-- error: is joined twice with different OPTIONS
-- fixed: JOIN d FOR SYSTEM_TIME => JOIN d /*+ OPTIONS('table-name' = 'e') */ FOR SYSTEM_TIME
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, a.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p AS a ON s.k = a.id JOIN d /*+ OPTIONS('table-name' = 'e') */ FOR SYSTEM_TIME AS OF s.p AS b ON s.n = b.id;
