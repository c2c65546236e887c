-- error: "users" is a shared table, which cannot be written
INSERT INTO users SELECT s.user_id, 'x', 1 FROM stream AS s;
