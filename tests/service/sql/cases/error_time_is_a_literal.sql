-- error: takes a column of the stream
-- fixed: TIMESTAMP '2024-01-01 00:00:00' => s.p
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01 00:00:00' ON s.k = d.id;
