-- error: "v" is a view
-- fixed: DROP TABLE v => DROP VIEW v
-- with: s_plain
CREATE VIEW v AS SELECT k FROM s;
DROP TABLE v;
