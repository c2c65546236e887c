-- error: table "o" is written by jdbc
-- fixed: 'connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop', 'table-name' = 'o' => 'connector' = 'delta', 'path' = 'o'
-- with: s_key
CREATE TABLE o (k BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop', 'table-name' = 'o');
INSERT INTO o SELECT k FROM s;
