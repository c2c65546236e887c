-- plan: INNER JOIN members AS m mysql-cdc(shop.members @ db:3306) [user_id INT NOT NULL, user_name STRING NOT NULL, age INT NOT NULL, segment STRING; key user_id] ON usub.user_id = m.user_id | SELECT usub.id AS subscription_id, usub.type AS subscription_type, m.age AS user_age, CASE WHEN (m.age < 18) THEN 1 ELSE 0 END AS is_minor | INTO preview print(, 100 rows)
-- with: subscriptions members
SELECT
  id AS subscription_id,
  type AS subscription_type,
  age AS user_age,
  CASE WHEN age < 18 THEN 1 ELSE 0 END AS is_minor
FROM subscriptions usub
JOIN members FOR SYSTEM_TIME AS OF usub.proc_time AS m
  ON usub.user_id = m.user_id;
