-- error: unknown connector "jdbc"
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/shop');
