-- plan: SELECT s.items[1].sku AS x, s.items[s.n].n AS y
-- with: d_named s_nested
CREATE TABLE o (x STRING, y INT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT items[1].sku, s.items[n].n FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
