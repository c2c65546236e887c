-- error: "users" is a shared table, which cannot be a probe
INSERT INTO sink SELECT id, name FROM users;
