-- plan: INTO o delta(s3://lake/o)
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o');
