-- plan: SELECT 2024-02-29:DATE AS x
-- with: d_priced s_all_types
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT DATE '2024-02-29'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
