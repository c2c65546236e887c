-- error: so it cannot be a dimension
-- fixed: SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.k => SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.k;
