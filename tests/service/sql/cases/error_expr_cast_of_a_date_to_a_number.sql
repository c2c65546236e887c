-- error: cannot cast DATE to INT
-- fixed: (dt AS => (CAST(dt AS STRING) AS
-- with: d_priced s_all_types out_int
INSERT INTO o SELECT CAST(dt AS INT)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
