-- error: PRINTF takes no BYTES
-- fixed: ', b => ', CAST(b AS STRING)
-- with: d_priced s_all_types out_string
INSERT INTO o SELECT PRINTF('%s', b)
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
