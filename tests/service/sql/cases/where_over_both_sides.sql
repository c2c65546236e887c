-- plan: WHERE ((d.level > 1) AND s.ok)
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s LEFT JOIN d FOR SYSTEM_TIME AS OF s.p ON k = id WHERE d.level > 1 AND s.ok;
