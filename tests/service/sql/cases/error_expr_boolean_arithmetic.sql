-- error: "+" takes numbers, not BOOLEAN
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT ok + 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
