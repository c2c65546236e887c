-- error: INSERT OVERWRITE is not supported
-- fixed: INSERT OVERWRITE o => INSERT INTO o
-- with: d_priced s_all_types out_bigint
INSERT OVERWRITE o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
