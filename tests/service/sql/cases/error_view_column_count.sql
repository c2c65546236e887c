-- error: names 2 columns, its query has 1
-- fixed: v (a, b) => v
-- with: d_price s_plain out_bigint_string
CREATE VIEW v (a, b) AS SELECT k FROM s;
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
