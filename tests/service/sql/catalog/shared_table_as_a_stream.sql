-- error: "users" is a shared table, which cannot be the stream
-- fixed: FROM users => FROM stream AS s JOIN users FOR SYSTEM_TIME AS OF s.at AS u ON s.user_id = u.id
INSERT INTO sink SELECT id, name FROM users;
