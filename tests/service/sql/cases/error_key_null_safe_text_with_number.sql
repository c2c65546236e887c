-- error: key "d.big" is BIGINT, compared with STRING
-- fixed: s.t IS NOT => CAST(s.t AS BIGINT) IS NOT
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.t IS NOT DISTINCT FROM d.big;
