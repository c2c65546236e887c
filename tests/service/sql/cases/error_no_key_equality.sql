-- error: ON has no equality between
-- fixed: s.k > d.id => s.k = d.id
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k > d.id;
