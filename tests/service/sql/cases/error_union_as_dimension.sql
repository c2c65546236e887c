-- error: view "v" has UNION ALL, so it cannot be a dimension
-- fixed:  UNION ALL SELECT id, name FROM users => 
-- with: orders users out_id_name
CREATE VIEW v AS SELECT id, name FROM users UNION ALL SELECT id, name FROM users;
INSERT INTO o SELECT o.id, v.name FROM orders AS o JOIN v FOR SYSTEM_TIME AS OF o.proc_time ON o.user_id = v.id;
