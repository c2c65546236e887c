-- plan: WHERE (orders.currency = 'EUR') | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o WITH dear (a, b, c) AS (SELECT id, currency, price FROM orders), euros AS (SELECT a, b FROM dear WHERE b = 'EUR') SELECT * FROM euros;
