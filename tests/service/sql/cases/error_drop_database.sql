-- error: expected TABLE or VIEW
-- fixed: DROP DATABASE x => DROP TABLE IF EXISTS x
DROP DATABASE x;
