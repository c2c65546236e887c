-- error: STARTSWITH takes two texts or two BYTES
-- fixed: (t, b) => (CAST(t AS BYTES), b)
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT STARTSWITH(t, b)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
