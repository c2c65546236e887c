-- error: stands behind the name of a table
-- fixed: /*+ OPTIONS('a'='b') */  => 
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT /*+ OPTIONS('a'='b') */ s.k, d.name FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
