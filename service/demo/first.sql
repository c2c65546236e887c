-- A first job: five clicks a second of a generator, joined with the table shop.user_info.
-- Change a row of the table, and the clicks from then on show it.
SET 'pipeline.name' = 'first';
CREATE TABLE user_info (
  user_id BIGINT, gender STRING, name STRING, PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '{host}', 'port' = '{port}',
  'username' = '{user}', 'password' = '${{secret:mariadb}}',
  'database-name' = 'shop', 'table-name' = 'user_info'
);
CREATE TABLE clicks (user_id BIGINT, item_id BIGINT, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '5',
  'fields.user_id.min' = '1', 'fields.user_id.max' = '{users}',
  'fields.item_id.min' = '1', 'fields.item_id.max' = '1000000'
);
CREATE TABLE enriched (user_id BIGINT, item_id BIGINT, gender STRING, name STRING)
WITH ('connector' = 'print');
INSERT INTO enriched
SELECT c.user_id, c.item_id, u.gender, u.name FROM clicks AS c
LEFT JOIN user_info FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
