-- plan: INSERT 1 | SELECT orders.id AS id, 'a' AS name | INTO o blackhole() | INSERT 2 | SELECT orders.id AS id, 'b' AS name | INTO o blackhole() | INSERT 3 | SELECT orders.id AS id, 'c' AS name | INTO o blackhole()
-- with: orders out_id_name
EXECUTE STATEMENT SET BEGIN INSERT INTO o SELECT id, 'a' FROM orders UNION ALL SELECT id, 'b' FROM orders; INSERT INTO o SELECT id, 'c' FROM orders; END;
