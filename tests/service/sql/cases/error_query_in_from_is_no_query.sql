-- error: expected SELECT, found "orders"
-- fixed: (orders) => orders
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM (orders);
