-- error: unknown column "levl"
-- fixed: levl => n
-- with: d_all_keys s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.big WHERE levl > 3;
