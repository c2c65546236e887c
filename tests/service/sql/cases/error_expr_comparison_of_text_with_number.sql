-- error: "=" has operands of STRING and INT
-- fixed: SELECT t = 1 => SELECT CAST(t AS INT) = 1
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT t = 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
