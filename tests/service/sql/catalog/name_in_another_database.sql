-- error: Write default_catalog.default_database.users, where it was declared.
-- fixed: JOIN users => JOIN default_catalog.default_database.users
CREATE DATABASE mine;
USE mine;
CREATE TABLE o (id BIGINT, name STRING) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.user_id, u.name FROM default_catalog.default_database.stream AS s
  JOIN users FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
