-- error: option "s3.access-key" needs "s3.secret-key"
-- fixed: '${secret:id}' => '${secret:id}', 's3.secret-key' = '${secret:key}'
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o', 's3.access-key' = '${secret:id}');
