-- error: catalog "c" has tables that are declared elsewhere
-- fixed: 'jdbc' => 'generic_in_memory'
-- with: orders
CREATE CATALOG c WITH ('type' = 'jdbc');
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT id, currency FROM orders;
