-- error: view "v" has column "a" twice
-- fixed: (a, a) => (a, b)
-- with: orders out_id_name
CREATE VIEW v (a, a) AS SELECT id, currency FROM orders;
INSERT INTO o SELECT id, currency FROM orders;
