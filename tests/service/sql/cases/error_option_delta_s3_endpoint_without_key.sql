-- error: option "s3.endpoint" needs an access key in the table's options
-- fixed: 's3.endpoint' => 's3.access-key' = '${secret:id}', 's3.secret-key' = '${secret:key}', 's3.endpoint'
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o', 's3.endpoint' = 'http://minio:9000');
