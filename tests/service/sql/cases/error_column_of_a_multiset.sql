-- error: type MULTISET is not supported
-- fixed: MULTISET<INT> => ARRAY<INT>
-- with: orders
CREATE TABLE x (id BIGINT, m MULTISET<INT>) WITH ('connector' = 'print');
INSERT INTO x (id) SELECT id FROM orders;
