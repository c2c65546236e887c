-- error: ARRAY_MAX takes no ARRAY of BOOLEAN
-- fixed: ARRAY_MAX(ARRAY[ok]) => ARRAY_CONTAINS(ARRAY[ok], TRUE)
-- with: d_priced s_all_types out_boolean
INSERT INTO o SELECT ARRAY_MAX(ARRAY[ok])
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
