-- error: The first element is [1]
-- fixed: items[0] => items[1]
-- with: d_named s_nested out_string
INSERT INTO o SELECT items[0].sku FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
