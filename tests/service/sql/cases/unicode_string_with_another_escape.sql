-- plan: SELECT orders.id AS id, '☺#+\20AC' AS name
-- with: orders out_id_name
INSERT INTO o SELECT id, U&'#263A##+\20AC' UESCAPE '#' FROM orders;
