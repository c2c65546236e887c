-- plan: SELECT orders.id AS select | INTO w blackhole()
-- with: orders
CREATE TABLE w (`select` BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO w (`select`) SELECT id FROM orders;
