-- warning: CREATE FUNCTION has no effect: code cannot be added to a job, so a query that calls it is refused.
-- with: orders out_id_name
CREATE FUNCTION shop.f AS 'com.example.F';
INSERT INTO o SELECT id, currency FROM orders;
