-- error: malformed DATE literal
-- fixed: 2024-13-01 => 2024-01-31
-- with: d_priced s_all_types
CREATE TABLE o (x DATE) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT DATE '2024-13-01'
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
