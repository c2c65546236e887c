-- The same clicks, joined with the users that had come when they were made, and with the complete table.
SET 'pipeline.name' = 'joined-too-early';
CREATE TABLE users (login STRING, name STRING, PRIMARY KEY (login) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'example-users', 'properties.bootstrap.servers' = '<kafka>',
  'key.format' = 'raw', 'value.format' = 'json'
);
CREATE TABLE users_by_then (
  login STRING, name STRING, came TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  WATERMARK FOR came AS came, PRIMARY KEY (login) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'example-users', 'properties.bootstrap.servers' = '<kafka>',
  'key.format' = 'raw', 'value.format' = 'json', 'scan.watermark.idle-timeout' = '1 s'
);
CREATE TABLE clicks (
  id BIGINT, login STRING, came TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  WATERMARK FOR came AS came - INTERVAL '1' SECOND
) WITH (
  'connector' = 'kafka', 'topic' = 'example-user-clicks', 'properties.bootstrap.servers' = '<kafka>',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.watermark.max-wait' = '2 s'
);
CREATE TABLE compared (id BIGINT, login STRING, joined_too_early STRING, name STRING)
WITH ('connector' = 'delta', 'path' = 'example_compared');
INSERT INTO compared
SELECT c.id, c.login, e.name, u.name FROM clicks AS c
LEFT JOIN users_by_then FOR SYSTEM_TIME AS OF c.came AS e ON c.login = e.login
LEFT JOIN users FOR SYSTEM_TIME AS OF c.came AS u ON c.login = u.login;
