-- error: USING is not supported
-- fixed: USING delta LOCATION 'o' => WITH ('connector' = 'delta', 'path' = 'o')
-- with: s_key
CREATE TABLE o (k BIGINT) USING delta LOCATION 'o';
INSERT INTO o SELECT k FROM s;
