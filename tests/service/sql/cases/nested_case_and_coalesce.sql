-- plan: SELECT COALESCE(CASE WHEN (s.n > 1) THEN s.items END, s.items) AS a
-- with: d_named s_nested
CREATE TABLE o (a ARRAY<ROW<sku STRING, n INT>>) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT COALESCE(CASE WHEN n > 1 THEN items END, items) FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
