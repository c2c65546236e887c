-- error: option "azure.account" has no effect for path "s3://lake/o"
-- fixed: , 'azure.account' = 'shop' => 
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o', 'azure.account' = 'shop');
