-- plan: INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON usub.user_id = m.user_id | SELECT usub.id AS subscription_id, usub.type AS subscription_type, m.age AS user_age, CASE WHEN (m.age < 18) THEN 1 ELSE 0 END AS is_minor | INTO preview print(, 100 rows)
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
SELECT
  id AS subscription_id,
  type AS subscription_type,
  age AS user_age,
  CASE WHEN age < 18 THEN 1 ELSE 0 END AS is_minor
FROM subscriptions usub
JOIN members FOR SYSTEM_TIME AS OF usub.proc_time AS m
  ON usub.user_id = m.user_id;
