-- error: a query in parentheses is joined
-- fixed: JOIN (SELECT * FROM d) ON => JOIN d FOR SYSTEM_TIME AS OF s.p ON
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN (SELECT * FROM d) ON s.k = d.id;
