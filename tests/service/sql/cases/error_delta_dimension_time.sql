-- error: column "at" of delta table "d" is TIME, which Delta does not have
-- fixed: `at` TIME => `at` BIGINT
-- with: s_key … out_bigint join_k
CREATE TABLE d (id BIGINT, `at` TIME, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'delta', 'path' = 'd');
