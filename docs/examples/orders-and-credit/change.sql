UPDATE customers SET credit = 50 WHERE id = 100;
DELETE FROM customers WHERE id = 500;
