-- error: table "d" is followed without an end
-- fixed: SELECT id FROM d; => CREATE TABLE o (x BIGINT) WITH ('connector' = 'print'); INSERT INTO o SELECT id FROM d;
-- with: d_price
SELECT id FROM d;
