-- error: unknown table "o"
-- with: orders
INSERT INTO lake.ods.o SELECT id, currency FROM orders;
