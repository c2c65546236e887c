-- error: "+" takes numbers, not BOOLEAN
-- fixed: SELECT ok + 1 => SELECT CAST(ok AS INT) + 1
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT ok + 1
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
