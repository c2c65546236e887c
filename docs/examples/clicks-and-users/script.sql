-- Clicks of a generator, joined with a table of MariaDB that may change meanwhile.
SET 'pipeline.name' = 'clicks-and-users';
CREATE TABLE users (
  user_id BIGINT, name STRING, plan STRING, PRIMARY KEY (user_id) NOT ENFORCED
) WITH (
  'connector' = 'mysql-cdc', 'hostname' = '<mariadb-host>', 'port' = '<mariadb-port>',
  'username' = 'cdc', 'password' = '${secret:mariadb}',
  'database-name' = 'example_clicks', 'table-name' = 'users'
);
CREATE TABLE clicks (user_id BIGINT, page STRING, agent STRING, proctime AS PROCTIME()) WITH (
  'connector' = 'datagen', 'rows-per-second' = '20',
  'fields.user_id.min' = '1', 'fields.user_id.max' = '600', 'fields.user_id.skew' = '1.1',
  'fields.page.expression' = '/#{Options.option ''home'',''cart'',''search'',''help''}',
  'fields.agent.expression' = '#{Options.option ''web'',''phone''}', 'fields.agent.null-rate' = '0.1'
);
CREATE TABLE visits (user_id BIGINT, page STRING, agent STRING, name STRING, plan STRING)
WITH ('connector' = 'delta', 'path' = 'example_visits');
INSERT INTO visits
SELECT c.user_id, c.page, c.agent, u.name, u.plan FROM clicks AS c
LEFT JOIN users FOR SYSTEM_TIME AS OF c.proctime AS u ON c.user_id = u.user_id;
