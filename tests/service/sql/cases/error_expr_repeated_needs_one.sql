-- error: COALESCE takes at least 1 arguments, not 0
-- fixed: COALESCE() => COALESCE(k)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT COALESCE()
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
