-- plan: SET table.local-time-zone = Europe/Berlin
SET 'table.local-time-zone' = 'Europe/Berlin';
INSERT INTO sink SELECT s.user_id, u.name FROM stream AS s
  JOIN users FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id;
