-- error: is a view, which has no options
-- fixed: FROM v /*+ OPTIONS('a'='b') */ => FROM v
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT k, p FROM s;
INSERT INTO o SELECT v.k, d.name FROM v /*+ OPTIONS('a'='b') */ JOIN d FOR SYSTEM_TIME AS OF v.p ON v.k = d.id;
