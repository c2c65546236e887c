-- plan: SELECT CENTURY(s.ts) AS x
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT EXTRACT(CENTURY FROM ts)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
