-- error: expected JOIN, WHERE, GROUP BY, ";" or the end, found "INSERT"
-- fixed: FROM orders => FROM orders;
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders
INSERT INTO o SELECT id, currency FROM orders;
