-- plan: INTO o delta(s3a://lake/shop/o)
-- with: d_of_secret s_key … join_k
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3a://lake/shop/o', 's3.access-key' = '${secret:id}', 's3.secret-key' = '${secret:key}', 's3.endpoint' = 'http://minio:9000', 's3.region' = 'eu-central-1', 's3.path.style.access' = 'true', 's3.session-token' = '${secret:token}');
