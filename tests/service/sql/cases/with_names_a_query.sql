-- plan: WHERE ((CAST(orders.price AS DECIMAL(12, 2)) > 10:DECIMAL(12, 2)) AND (CAST(orders.price AS DECIMAL(12, 2)) < 100:DECIMAL(12, 2))) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o WITH dear AS (SELECT id, currency, price FROM orders WHERE price > 10) SELECT id, currency FROM dear WHERE price < 100;
