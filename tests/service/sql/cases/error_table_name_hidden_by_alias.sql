-- error: table "s" has the alias "c" here
-- fixed: SELECT s.k => SELECT c.k
-- with: d_priced s_all_types out_bigint
INSERT INTO o SELECT s.k FROM s AS c JOIN d FOR SYSTEM_TIME AS OF c.p ON c.k = d.id;
