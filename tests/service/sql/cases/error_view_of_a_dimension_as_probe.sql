-- error: is mysql-cdc, which cannot be the stream
-- fixed: FROM v JOIN d FOR SYSTEM_TIME AS OF v.name ON v.id = d.id => FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- fixed: SELECT v.id => SELECT s.k
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT * FROM d;
INSERT INTO o SELECT v.id, d.name FROM v JOIN d FOR SYSTEM_TIME AS OF v.name ON v.id = d.id;
