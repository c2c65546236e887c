-- error: ON has no equality between "u" and the tables before it
-- fixed: o.currency = u.upper_name => o.user_id = u.id AND o.currency = u.upper_name
-- with: orders users_computed out_id_name
INSERT INTO o SELECT o.id, u.name FROM orders AS o JOIN users FOR SYSTEM_TIME AS OF o.proc_time AS u ON o.currency = u.upper_name;
