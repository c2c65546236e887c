-- error: option "azure.account" has no meaning for path "s3://lake/o"
-- fixed: , 'azure.account' = 'shop' => 
-- with: d_of_secret s_key
CREATE TABLE o (x BIGINT) WITH ('connector' = 'delta', 'path' = 's3://lake/o', 'azure.account' = 'shop');
INSERT INTO o SELECT s.k
FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.id;
