-- plan: FROM g AS g datagen(10000/s, 10000 rows) [k BIGINT, p = PROCTIME()]
-- with: d_price
CREATE TABLE g (k BIGINT, p AS PROCTIME()) WITH ('connector' = 'datagen');
SELECT k, name FROM g JOIN d FOR SYSTEM_TIME AS OF g.p ON k = id;
