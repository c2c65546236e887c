-- error: is not closed
-- fixed: 'topic'='a') => 'topic'='a') */
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('topic'='a') JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
