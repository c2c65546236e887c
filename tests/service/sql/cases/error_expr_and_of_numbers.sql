-- error: an operand of "AND" is INT, expected BOOLEAN
-- fixed: SELECT n AND => SELECT n = 1 AND
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT n AND ok
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
