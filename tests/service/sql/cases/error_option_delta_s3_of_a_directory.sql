-- error: option "s3.region" has no effect for path "shop/o"
-- fixed: 'path' = 'shop/o' => 'path' = 's3://bucket/table'
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 'shop/o', 's3.region' = 'eu-central-1');
