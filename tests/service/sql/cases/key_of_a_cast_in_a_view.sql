-- plan: SELECT s.k AS x, d.name AS y
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT CAST(id AS STRING) AS id, name FROM d;
INSERT INTO o SELECT s.k, v.name FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.t = v.id;
