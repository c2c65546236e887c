-- plan: SELECT NOT(LIKE(s.t, '10!%', '!')) AS x
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t NOT LIKE '10!%' ESCAPE '!'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
