-- error: Write CAST(… AS INT).
-- fixed: LEFT(t, k) => LEFT(t, CAST(k AS INT))
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT LEFT(t, k)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
