-- error: EXISTS is not supported
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT EXISTS (SELECT 1)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
