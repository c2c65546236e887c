-- error: ON has no equality between
-- fixed: ON s.k IS => ON s.k = d.id AND s.k IS
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k IS DISTINCT FROM d.big;
