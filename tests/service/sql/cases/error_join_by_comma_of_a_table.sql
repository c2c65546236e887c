-- error: except LATERAL TABLE
-- fixed: FROM s, d WHERE s.k = d.id => FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s, d WHERE s.k = d.id;
