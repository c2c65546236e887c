-- error: a table name has more than three parts
-- fixed: a.b.c.orders => orders
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM a.b.c.orders;
