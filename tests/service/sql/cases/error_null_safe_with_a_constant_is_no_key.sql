-- error: ON has no equality between
-- fixed: ON d.big => ON s.k = d.id AND d.big
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON d.big IS NOT DISTINCT FROM NULL;
