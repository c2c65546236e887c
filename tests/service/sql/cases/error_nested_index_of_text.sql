-- error: expected an integer
-- fixed: items['a'].sku => items[1].sku
-- with: d_named s_nested out_string
INSERT INTO o SELECT items['a'].sku FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
