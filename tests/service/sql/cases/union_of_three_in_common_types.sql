-- plan: INSERT 1 | SELECT CAST(CAST(orders.id AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole() | INSERT 2 | SELECT CAST(CAST(CAST(orders.price AS DECIMAL(12, 2)) AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole() | INSERT 3 | SELECT CAST(CAST(1:DECIMAL(12, 2) AS DECIMAL(21, 2)) AS DECIMAL(20, 2)) AS x | INTO p blackhole()
-- with: orders
CREATE TABLE p (x DECIMAL(20, 2)) WITH ('connector' = 'blackhole');
INSERT INTO p SELECT id FROM orders UNION ALL (SELECT price FROM orders UNION ALL SELECT 1 FROM orders);
