-- error: table "s" is not of MySQL or MariaDB
-- with: d_small … out_bigint join_k
CREATE TABLE s (k BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop');
