-- error: unknown column "kk" in "s"
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT s.kk FROM s;
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
