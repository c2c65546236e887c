-- error: key "d.id" is BIGINT, compared with STRING
-- fixed: ON s.t = d => ON CAST(s.t AS BIGINT) = d
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.t = d.id;
