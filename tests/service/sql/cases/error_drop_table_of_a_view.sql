-- error: "v" is a view
-- with: s_plain
CREATE VIEW v AS SELECT k FROM s;
DROP TABLE v;
