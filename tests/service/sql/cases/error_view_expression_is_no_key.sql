-- error: ON has no equality between "v"
-- fixed: id + 1 AS id => id, id + 1 AS next
-- with: d_price s_plain out_bigint_string
CREATE VIEW v AS SELECT id + 1 AS id FROM d;
INSERT INTO o SELECT s.k, s.t FROM s JOIN v FOR SYSTEM_TIME AS OF s.p ON s.k = v.id;
