-- error: is a view, which cannot be written
-- fixed: INTO v => INTO o
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
INSERT INTO v SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
