-- error: what a script declares is forgotten at its end
-- fixed: DROP TABLE o; =>
-- with: s_plain out_bigint
INSERT INTO o SELECT k FROM s;
DROP TABLE o;
