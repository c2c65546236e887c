-- plan: SELECT orders.currency AS a, orders.currency AS b, COALESCE(orders.currency, '') AS c, NULL:BYTES AS d
-- with: orders
CREATE TABLE o (a CHARACTER(9), b CHARACTER VARYING(9), c VARCHAR(9) CHARACTER SET `UTF-16LE` NOT NULL, d BINARY VARYING(9)) WITH ('connector' = 'blackhole');
INSERT INTO o (a, b, c) SELECT currency, currency, COALESCE(currency, '') FROM orders;
