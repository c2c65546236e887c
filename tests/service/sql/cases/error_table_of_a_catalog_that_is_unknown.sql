-- error: unknown table "o"
-- fixed: INSERT INTO lake => CREATE TABLE lake.ods.o (id BIGINT, name STRING) WITH ('connector' = 'print'); INSERT INTO lake
-- with: orders
INSERT INTO lake.ods.o SELECT id, currency FROM orders;
