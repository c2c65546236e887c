-- error: has no option "connector"
-- fixed: 'topic' = 's' => 'connector' = 'datagen'
-- fixed: (k BIGINT) => (k BIGINT, p AS PROCTIME())
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT) WITH ('topic' = 's');
