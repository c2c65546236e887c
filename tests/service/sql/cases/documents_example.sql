-- plan: FROM click_event AS c kafka(clicks @ 127.0.0.1:9092, earliest-offset) [user_id BIGINT, item_id BIGINT, proctime = PROCTIME()] | LEFT JOIN user_info AS u mysql-cdc(shop.user_info @ 127.0.0.1:3306) [user_id BIGINT NOT NULL, gender STRING, name STRING; key user_id] ON c.user_id = u.user_id | SELECT c.user_id AS user_id, c.item_id AS item_id, u.gender AS gender | INTO enriched delta(enriched)
CREATE TABLE user_info (user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT ENFORCED)
WITH ('connector'='mysql-cdc', 'hostname'='127.0.0.1', 'port'='3306', 'username'='cdc', 'password'='${secret:shop}',
      'database-name'='shop', 'table-name'='user_info');
CREATE TABLE click_event (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME())
WITH ('connector'='kafka', 'topic'='clicks', 'properties.bootstrap.servers'='127.0.0.1:9092',
      'format'='json', 'scan.startup.mode'='earliest-offset');
CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING) WITH ('connector'='delta', 'path'='enriched');
INSERT INTO enriched
SELECT c.user_id, c.item_id, u.gender FROM click_event AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
