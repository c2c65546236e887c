-- warning: ANALYZE TABLE has no effect: the plan of a job does not depend on statistics.
-- with: orders out_id_name
ANALYZE TABLE orders COMPUTE STATISTICS FOR ALL COLUMNS;
INSERT INTO o SELECT id, currency FROM orders;
