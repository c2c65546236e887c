-- error: unknown connector "jdbc"
-- with: d_small
CREATE TABLE s (k BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
