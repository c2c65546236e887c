-- error: "s" is a table
-- fixed: DROP VIEW s => DROP TABLE s
-- with: s_plain
DROP VIEW s;
