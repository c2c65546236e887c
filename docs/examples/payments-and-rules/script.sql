-- Payments that a rule forbids, or that come from a blocked account: a stream, two tables, INNER joins.
SET 'pipeline.name' = 'payments-and-rules';
CREATE TABLE rules (country STRING, most DECIMAL(10, 2), why STRING, PRIMARY KEY (country) NOT ENFORCED) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '<mariadb-host>', 'port' = '<mariadb-port>',
  'username' = 'cdc', 'password' = '${secret:mariadb}',
  'database-name' = 'example_payments', 'table-name' = 'rules'
);
CREATE TABLE accounts (account BIGINT, owner STRING, blocked BOOLEAN, PRIMARY KEY (account) NOT ENFORCED) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '<mariadb-host>', 'port' = '<mariadb-port>',
  'username' = 'cdc', 'password' = '${secret:mariadb}',
  'database-name' = 'example_payments', 'table-name' = 'accounts'
);
CREATE TABLE payments (payment BIGINT, account BIGINT, country STRING, amount DECIMAL(10, 2), proctime AS PROCTIME())
WITH (
  'connector' = 'kafka', 'topic' = 'example-payments', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE alerts (payment BIGINT, owner STRING, amount DECIMAL(10, 2), why STRING)
WITH ('connector' = 'delta', 'path' = 'example_alerts');
INSERT INTO alerts
SELECT p.payment, a.owner, p.amount, CASE WHEN a.blocked THEN 'blocked account' ELSE r.why END FROM payments AS p
INNER JOIN rules FOR SYSTEM_TIME AS OF p.proctime AS r ON p.country = r.country
INNER JOIN accounts FOR SYSTEM_TIME AS OF p.proctime AS a ON p.account = a.account
WHERE a.blocked OR p.amount > r.most;
