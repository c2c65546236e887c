-- error: LIMIT is not supported here
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k FROM s LIMIT 3;
INSERT INTO o SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
