-- error: "users" is a shared table, which cannot be written
-- fixed: INTO users => INTO sink
-- fixed: 'x', 1 => 'x'
INSERT INTO users SELECT s.user_id, 'x', 1 FROM stream AS s;
