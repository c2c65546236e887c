-- error: unknown table "s"
-- fixed: DROP TABLE s; => 
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
DROP TABLE s;
INSERT INTO o SELECT v.k, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.p ON v.k = d.id;
