-- error: takes a column of the stream
-- fixed: AS OF CURRENT_TIMESTAMP => AS OF PROCTIME()
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT k FROM s JOIN d FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP ON s.k = d.id;
