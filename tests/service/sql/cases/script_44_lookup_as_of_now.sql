-- plan: LEFT JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON s.user_id = m.user_id | SELECT s.id AS id, m.user_name AS name | INTO sink print()
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
CREATE TEMPORARY TABLE sink (id STRING, name STRING) WITH ('connector' = 'print');
INSERT INTO sink (id, name)
SELECT s.`id`, m.`user_name`
FROM subscriptions AS s
LEFT JOIN members FOR SYSTEM_TIME AS OF PROCTIME() AS m ON s.user_id = m.user_id;
