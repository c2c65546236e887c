-- error: HAVING is not supported
-- fixed: HAVING k > 1 => WHERE k > 1
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id HAVING k > 1;
