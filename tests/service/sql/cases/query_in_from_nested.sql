-- plan: WHERE ((orders.id > 1:BIGINT) AND (orders.currency <> 'EUR')) | SELECT orders.id AS id, orders.currency AS name | INTO o blackhole()
-- with: orders out_id_name
INSERT INTO o SELECT * FROM (SELECT id, c FROM (SELECT id, currency c FROM orders) x WHERE id > 1) y WHERE c <> 'EUR';
