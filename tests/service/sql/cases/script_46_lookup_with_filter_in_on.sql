-- plan: INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id AND ((m.age >= 18) AND ((m.segment = 'gold') AND (s.type <> 'trial'))) | SELECT s.id AS id, m.user_name AS name, s.start_date AS since | INTO adults print()
CREATE TEMPORARY TABLE subscriptions (
    `id` STRING,
    `user_id` INT,
    `type` STRING,
    `start_date` TIMESTAMP(3),
    `end_date` TIMESTAMP(3),
    `payment_expiration` TIMESTAMP(3),
    `proc_time` AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = 'broker:9092', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TEMPORARY TABLE members (
    `user_id` INT PRIMARY KEY,
    `user_name` VARCHAR(255) NOT NULL,
    `age` INT NOT NULL,
    `segment` VARCHAR(20)
) WITH ('connector' = 'mysql-cdc', 'hostname' = 'db', 'username' = 'cdc', 'password' = '${secret:db}', 'database-name' = 'shop', 'table-name' = 'members');
CREATE TABLE adults (id STRING, name STRING, since TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO adults
SELECT s.id, m.user_name, s.start_date
FROM subscriptions s
INNER JOIN members FOR SYSTEM_TIME AS OF s.proc_time m
ON m.user_id = s.user_id AND m.age >= 18 AND m.segment = 'gold' AND s.type <> 'trial';
