-- error: is not closed
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('topic'='a') JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
