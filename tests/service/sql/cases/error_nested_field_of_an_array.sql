-- error: Only a ROW has fields
-- fixed: items.sku => items[1].sku
-- with: d_named s_nested out_string
INSERT INTO o SELECT items.sku FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
