-- error: the hint has it twice
-- fixed: 'topic'='a', 'topic'='b' => 'topic'='a'
-- with: d_price s_plain out_bigint_string
INSERT INTO o SELECT s.k, d.name FROM s /*+ OPTIONS('topic'='a', 'topic'='b') */ JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
