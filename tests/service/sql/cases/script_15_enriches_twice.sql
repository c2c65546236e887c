-- plan: INNER JOIN accounts AS a mysql-cdc(shop.accounts @ db:3306) [account STRING NOT NULL, owner_id BIGINT; key account] ON p.account = a.account | LEFT JOIN users AS u mysql-cdc(shop.users @ db:3306) [user_id BIGINT NOT NULL, full_name STRING, country STRING, is_active BOOLEAN; key user_id] ON a.owner_id = u.user_id AND (u.country = 'DE') | WHERE (p.amount > 1:DECIMAL(18, 2)) | SELECT p.payment_id AS payment_id, u.full_name AS full_name | INTO named delta(named)
-- with: payments
CREATE TABLE accounts (
    account STRING,
    owner_id BIGINT,
    PRIMARY KEY (account) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'accounts'
);
CREATE TABLE users (
    user_id BIGINT,
    full_name STRING,
    country STRING,
    is_active BOOLEAN,
    PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
    'connector' = 'mysql-cdc', 'hostname' = 'db', 'port' = '3306',
    'username' = 'cdc', 'password' = '${secret:db}',
    'database-name' = 'shop', 'table-name' = 'users'
);
CREATE TABLE named (
    payment_id STRING, full_name STRING
) WITH ('connector' = 'delta', 'path' = 'named');
INSERT INTO named
SELECT p.payment_id, u.full_name
FROM payments AS p
JOIN accounts FOR SYSTEM_TIME AS OF p.proc_time AS a ON p.account = a.account
LEFT OUTER JOIN users FOR SYSTEM_TIME AS OF p.proc_time AS u ON a.owner_id = u.user_id AND u.country = 'DE'
WHERE p.amount > 1;
