-- error: expected WHEN
-- fixed: CASE k END => CASE WHEN k > 1 THEN k END
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT CASE k END
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
