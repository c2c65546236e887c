-- plan: WHERE (IN(orders.currency, 'EUR', 'USD') AND NOT(IN(orders.user_id, 1:BIGINT, 2:BIGINT, 3:BIGINT))) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT id, currency FROM orders WHERE currency IN ('EUR', 'USD') AND user_id NOT IN (1, 2, 3);
