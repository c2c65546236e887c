CREATE DATABASE IF NOT EXISTS example_payments;
USE example_payments;
CREATE TABLE IF NOT EXISTS rules (
  country CHAR(2) COLLATE utf8mb4_bin PRIMARY KEY, most DECIMAL(10, 2) NOT NULL, why VARCHAR(80) NOT NULL);
INSERT IGNORE INTO rules VALUES
  ('DE', 1000.00, 'above the usual limit'), ('FR', 500.00, 'above the usual limit'), ('XX', 0.00, 'no such country');
CREATE TABLE IF NOT EXISTS accounts (account BIGINT PRIMARY KEY, owner VARCHAR(80) NOT NULL, blocked BOOLEAN NOT NULL);
INSERT IGNORE INTO accounts VALUES (1, 'Ada', FALSE), (2, 'Grace', FALSE), (3, 'Mallory', TRUE);
