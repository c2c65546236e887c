-- error: option "s3.access-key" needs "s3.secret-key"
-- fixed: '${secret:id}' => '${secret:id}', 's3.secret-key' = '${secret:key}'
-- with: d_of_secret s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o', 's3.access-key' = '${secret:id}');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
