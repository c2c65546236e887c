-- error: has no option "connector"
-- fixed: 'topic' = 's' => 'connector' = 'datagen'
-- fixed: (k BIGINT) => (k BIGINT, p AS PROCTIME())
-- with: d_small
CREATE TABLE s (k BIGINT) WITH ('topic' = 's');
CREATE TABLE o (x BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
