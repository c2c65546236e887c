-- warning: The database "ods" has no tables but those that this script declares in it.
-- with: orders
CREATE TABLE ods.o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO ods.o SELECT id, currency FROM orders;
