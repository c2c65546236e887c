-- plan: INNER JOIN currency_rates AS c mysql-cdc(shop.currency_rates @ db:3306) [currency_code STRING NOT NULL, eur_rate DECIMAL(6, 4), rate_time TIMESTAMP(3); key currency_code] ON t.currency_code = c.currency_code AS OF t.transaction_time | SELECT t.id AS id, (t.total * c.eur_rate):DECIMAL(17, 6) AS total_eur, t.total AS total, c.currency_code AS currency_code, t.transaction_time AS transaction_time | INTO preview print(, 100 rows)
CREATE TABLE transactions (
    id STRING,
    currency_code STRING,
    total DECIMAL(10,2),
    transaction_time TIMESTAMP(3),
    WATERMARK FOR `transaction_time` AS transaction_time - INTERVAL '15' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'transactions', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE currency_rates (
    `currency_code` STRING,
    `eur_rate` DECIMAL(6,4),
    `rate_time` TIMESTAMP(3),
    WATERMARK FOR `rate_time` AS rate_time - INTERVAL '15' SECONDS,
    PRIMARY KEY (currency_code) NOT ENFORCED
) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'currency_rates');
SELECT
    t.id,
    t.total * c.eur_rate AS total_eur,
    t.total,
    c.currency_code,
    t.transaction_time
FROM transactions t
JOIN currency_rates FOR SYSTEM_TIME AS OF t.transaction_time AS c
ON t.currency_code = c.currency_code;
