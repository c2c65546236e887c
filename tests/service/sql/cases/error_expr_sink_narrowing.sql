-- error: Write CAST(… AS INT).
-- fixed: SELECT k => SELECT CAST(k AS INT)
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
